// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/rng.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace simengine {
namespace {

enum class Kind { letter, digit, blank, line_end, mark, other };
constexpr Token first_token = 1000;  // below: bytes and control tokens

Kind kind_of(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Kind::letter;
    if (c >= '0' && c <= '9') return Kind::digit;
    if (c == ' ') return Kind::blank;
    if (c == '\n' || c == '\r' || c == '\t') return Kind::line_end;
    return byte < 0x80 ? Kind::mark : Kind::other;
}

std::size_t run_of(std::string_view text, std::size_t from, Kind kind, std::size_t most) {
    std::size_t end = from;
    while (end < text.size() && end - from < most && kind_of(text[end]) == kind) ++end;
    return end;
}

constexpr std::size_t longest_word = 8, most_digits = 3, most_marks = 2;

/// The end of the word, number or character that begins at `from`.
std::size_t end_of(std::string_view text, std::size_t from) {
    switch (kind_of(text[from])) {
        case Kind::letter: return run_of(text, from, Kind::letter, longest_word);
        case Kind::digit: return run_of(text, from, Kind::digit, most_digits);
        case Kind::mark: return run_of(text, from, Kind::mark, most_marks);
        case Kind::blank: return run_of(text, from, Kind::blank, text.size());
        case Kind::line_end: return run_of(text, from, Kind::line_end, text.size());
        case Kind::other: break;
    }
    std::size_t end = from + 1;  // and the bytes that go on with this character
    while (end < text.size() && end - from < 4 &&
           (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U)
        ++end;
    return end;
}

/// With the blank that stands before them; 64, so that six bits choose one.
constexpr std::array<std::string_view, 64> spoken{
    " a",     " the",   " river",  " stone", " light",  " wind",  " slow",  " quick",
    " under", " over",  " engine", " step",  " cache",  " token", " and",   " then",
    " where", " old",   " young",  " tree",  " bird",   " paper", " glass", " night",
    " day",   " early", " late",   " warm",  " cold",   " north", " south", " east",
    " west",  " road",  " bridge", " house", " garden", " water", " salt",  " sand",
    " ship",  " rope",  " iron",   " gold",  " green",  " blue",  " white", " dark",
    " seven", " nine",  " many",   " few",   " turns",  " runs",  " waits", " comes",
    " goes",  " falls", " grows",  " keeps", " finds",  " says",  " asks",  " ends"};

std::size_t choice(std::uint64_t key, std::int64_t at) {
    return servetune::mix64(key + std::uint64_t(at) * 0x9e3779b97f4a7c15ULL) % spoken.size();
}

}  // namespace

std::size_t piece_length(std::string_view text) {
    if (text.front() != ' ') return end_of(text, 0);
    const std::size_t blanks = run_of(text, 0, Kind::blank, text.size());
    if (blanks == text.size() || kind_of(text[blanks]) == Kind::line_end) return blanks;
    // The last blank belongs to what follows.
    return blanks > 1 ? blanks - 1 : end_of(text, 1);
}

Tokenizer::Tokenizer(std::int64_t vocabulary)
    : numbers_(std::uint64_t(std::max(vocabulary, std::int64_t{2} * first_token) - first_token)) {}

Token Tokenizer::token_of(std::string_view piece) const {
    return first_token +
           static_cast<Token>(servetune::mix64(servetune::fingerprint_of(piece).bits) % numbers_);
}

void Tokenizer::encode(std::string_view text, std::vector<Token>& tokens) const {
    while (!text.empty()) {
        const std::size_t length = piece_length(text);
        tokens.push_back(token_of(text.substr(0, length)));
        text.remove_prefix(length);
    }
}

void Tokenizer::encode_turn(std::string_view role, std::vector<Token>& tokens) const {
    tokens.push_back(1);
    tokens.push_back(token_of(role));
    tokens.push_back(2);
}

void Tokenizer::encode_message(std::string_view role, std::string_view text,
                               std::vector<Token>& tokens) const {
    encode_turn(role, tokens);
    encode(text, tokens);
    tokens.push_back(3);
}

std::vector<std::uint64_t> piece_names(std::span<const Token> tokens, std::size_t piece_tokens) {
    std::vector<std::uint64_t> names;
    names.reserve(tokens.size() / piece_tokens);
    std::uint64_t chain = 0x5e17e7u;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        chain = servetune::mix64(chain ^ std::uint64_t(tokens[i]));
        if ((i + 1) % piece_tokens == 0) names.push_back(chain);
    }
    return names;
}

std::string_view AnswerText::token(std::int64_t at) const {
    const std::string_view text = spoken[choice(key_, at)];
    return at == 0 ? text.substr(1) : text;
}

void AnswerText::encode(std::int64_t count, const Tokenizer& tokenizer,
                        std::vector<Token>& tokens) const {
    for (std::int64_t i = 0; i < count; ++i) tokens.push_back(tokenizer.token_of(token(i)));
}

std::int64_t natural_length(std::uint64_t key) {
    const double uniform = double(servetune::mix64(key ^ 0x1e47ULL) >> 11U) * 0x1p-53;
    return 1 + std::int64_t(-250 * std::log1p(-uniform));
}

}  // namespace simengine
