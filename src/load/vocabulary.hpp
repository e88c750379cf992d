// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/template.hpp"
#include "servetune/detail/load/calibration.hpp"
#include "servetune/rng.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// One token each, with and without a blank before it, in r50k, cl100k, o200k and Llama 2's
/// vocabulary.
extern const EmbeddedFile words_txt;

/// The words that prompts of our own are made of.
///
/// A prompt of words begins with the same word always: the first has no blank before it, and a
/// vocabulary may count it differently.
class Symbols {
public:
    explicit Symbols(const Calibration& calibration);

    /// Symbols at the start of a prompt that a salt changes, or the numbers that stand for it; what
    /// comes before them is always the same.
    [[nodiscard]] std::size_t header_begin() const { return 1; }
    [[nodiscard]] std::size_t header_end() const { return header_begin() + digits_; }

    /// Draws symbols `from` ... `to` - 1.
    void fill(std::vector<std::uint32_t>& symbols, std::size_t from, std::size_t to, Rng rng) const;
    /// Writes `key` as digits from `at` on, as far as there is room; different keys, different
    /// digits.
    void write_key(std::vector<std::uint32_t>& symbols, std::size_t at, std::uint64_t key) const;
    [[nodiscard]] std::string text(const std::vector<std::uint32_t>& symbols) const;

private:
    std::vector<std::string_view> words_;
    std::uint32_t count_ = 0;
    std::size_t digits_ = 0;
};

}  // namespace servetune
