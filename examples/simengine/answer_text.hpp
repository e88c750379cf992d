// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace simengine {

/// What an engine without a model says: words, one token each, chosen by a key and the place alone.
/// The same request gets the same answer.
class AnswerText {
public:
    explicit AnswerText(std::uint64_t key) : key_(key) {}
    /// The text of the token at this place; the first one has no blank before it. Nothing in it
    /// needs escaping in JSON.
    [[nodiscard]] std::string_view token(std::int64_t at) const;
    /// Appends the first `count` tokens, as the tokenizer reads their text.
    void encode(std::int64_t count, const Tokenizer& tokenizer, std::vector<Token>& tokens) const;

private:
    std::uint64_t key_;
};

/// How long an answer is that nothing but its end ends: drawn from the key, exponential with a mean
/// of 250 tokens. That is about what load tests with ShareGPT's conversations report as their mean
/// answer; the shape is assumed.
std::int64_t natural_length(std::uint64_t key);

}  // namespace simengine
