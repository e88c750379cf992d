// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simengine {

using Token = std::int32_t;

/// Text in pieces as byte-pair vocabularies cut it, without a vocabulary: a word of up to eight
/// letters with the blank before it is one token, longer ones are more, digits come in threes,
/// marks in twos, a run of blanks or of line ends is one, other characters one each. A token's
/// number is a hash of its text, so texts that begin alike have tokens that begin alike.
///
/// Made so that the load generator's calibration is exact: one token for each of its words.
class Tokenizer {
public:
    /// `vocabulary`: numbers run from 1000 to vocabulary - 1; at least 2000.
    explicit Tokenizer(std::int64_t vocabulary);

    /// Appends the tokens of `text`.
    void encode(std::string_view text, std::vector<Token>& tokens) const;
    /// The number of one piece.
    [[nodiscard]] Token token_of(std::string_view piece) const;

    /// A message of a chat as the template writes it: three tokens that name the role, the text,
    /// one that ends it.
    void encode_message(std::string_view role, std::string_view text,
                        std::vector<Token>& tokens) const;
    /// What the template writes last, before the answer: exactly what encode_message writes before
    /// a text of the assistant.
    void encode_turn(std::string_view role, std::vector<Token>& tokens) const;

private:
    std::uint64_t numbers_;
};

/// The length of the piece that `text` begins with, in bytes; `text` must not be empty.
std::size_t piece_length(std::string_view text);

/// Names of the whole pieces of `piece_tokens` tokens: each depends on all tokens up to its end
/// (EngineRequest::pieces).
std::vector<std::uint64_t> piece_names(std::span<const Token> tokens, std::size_t piece_tokens);

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
