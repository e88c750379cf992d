// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/load/calibration.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace servetune {

/// Names for the blocks of a prompt, made from front to back: each is of its block and of all
/// before it, so that two prompts share a name only where they are the same up to there. Names are
/// hashes: they stay in memory.
///
/// A block has 16 tokens, as many as a page of the caches in most engines: of ids exactly, of a
/// text by `estimated_tokens`, word by word, so that where a block ends is decided by what comes
/// before.
class PromptBlocks {
public:
    static constexpr std::int64_t tokens = 16;
    /// Of one prompt; more tokens than the longest contexts have.
    static constexpr std::size_t most = (std::size_t{1} << 24U) / tokens;

    void add_text(std::string_view text) {
        while (!text.empty()) {
            const std::string_view word = text.substr(0, word_length(text));
            text.remove_prefix(word.size());
            for (const char c : word) mix(static_cast<unsigned char>(c));
            tokens_ += estimated_tokens(word);
            end_blocks();
        }
    }
    void add_id(std::int64_t id) {
        for (int shift = 0; shift < 32; shift += 8)
            mix(static_cast<unsigned char>(static_cast<std::uint64_t>(id) >>
                                           static_cast<unsigned>(shift)));
        tokens_ += 1;
        end_blocks();
    }

    [[nodiscard]] double token_count() const { return tokens_; }
    [[nodiscard]] const std::vector<std::uint64_t>& names() const { return names_; }

private:
    /// Up to the next blank behind other characters, or 32 bytes: some languages have no blanks.
    static std::size_t word_length(std::string_view text) {
        constexpr std::size_t longest = 32;
        const std::size_t begin = text.find_first_not_of(" \n\t");
        if (begin == std::string_view::npos || begin >= longest)
            return std::min(text.size(), longest);
        std::size_t end = std::min({text.find_first_of(" \n\t", begin), text.size(), longest});
        while (end < text.size() && end < longest + 3 &&
               (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
            ++end;
        return end;
    }
    void mix(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ULL; }
    void end_blocks() {
        while (tokens_ >= static_cast<double>(tokens) * static_cast<double>(names_.size() + 1) &&
               names_.size() < most) {
            mix(0xFF);  // in no UTF-8 text
            names_.push_back(hash_);
        }
    }

    std::uint64_t hash_ = fingerprint_of("").bits;  // and FNV-1a from there on
    double tokens_ = 0;
    std::vector<std::uint64_t> names_{};
};

}  // namespace servetune
