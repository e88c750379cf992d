// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/ranges.hpp"  // `contains`, of texts too

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace servetune {

inline constexpr auto npos = std::string_view::npos;
inline constexpr std::string_view blanks = " \t\r\n\v\f";

/// Without blanks, tabs and line ends around it.
inline std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(blanks);
    return first == npos ? std::string_view()
                         : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// What stands between blanks, tabs and line ends.
inline std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> result;
    while (!(text = trimmed(text)).empty()) {
        const std::string_view word = text.substr(0, text.find_first_of(blanks));
        result.emplace_back(word);
        text.remove_prefix(word.size());
    }
    return result;
}

/// What stands between separators, as std::getline reads it: nothing behind the last one.
inline std::vector<std::string> parts_of(std::string_view text, char separator) {
    std::vector<std::string> result;
    while (!text.empty()) {
        result.emplace_back(text.substr(0, text.find(separator)));
        text.remove_prefix(std::min(text.size(), result.back().size() + 1));
    }
    return result;
}

/// ASCII letters in lower case, other bytes as they are.
inline std::string lower_case(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

/// With `by` for each `what`; what came of one is not looked at again.
inline std::string replaced_all(std::string text, std::string_view what, std::string_view by) {
    for (auto at = text.find(what); at != npos; at = text.find(what, at + by.size()))
        text.replace(at, what.size(), by);
    return text;
}

/// With its `{names}` filled in, one name after the other; unknown names stay.
inline std::string filled(std::string text,
                          const std::vector<std::pair<std::string, std::string>>& values) {
    for (const auto& [name, value] : values)
        text = replaced_all(std::move(text), "{" + name + "}", value);
    return text;
}

// From a double to an integer. A cast of a number that the integer cannot hold is undefined, and
// files say 1e308.

/// `number` without its fraction, the nearest in [low, high]; `low` for NaN. `low` and `high` are
/// within 2^53.
inline std::int64_t whole_number_within(double number, std::int64_t low, std::int64_t high) {
    if (!(number > double(low))) return low;
    return std::int64_t(std::min(number, double(high)));
}

/// What some editors put before UTF-8 text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The text in `bytes`, without a byte order mark; it views `bytes`. Throws ParseError
/// `name:line:column:` (columns in bytes) for what is not UTF-8 (RFC 3629) and for NUL bytes.
std::string_view utf8_text(std::string_view bytes, const std::string& name);

/// The text, or the beginning of a longer one and `...`: about `longest` bytes, and no part of a
/// character.
std::string start_of(std::string_view text, std::size_t longest);

/// The bytes of the UTF-8 character at the start of `text` (RFC 3629, section 4); 0 where there is
/// none. NUL is a character of one byte.
constexpr std::size_t character_length(std::string_view text) {
    struct Sequence {
        unsigned char first_low, first_high, second_low, second_high;
        std::size_t length;
    };
    constexpr std::array sequences{
        Sequence{0x00, 0x7F, 0x00, 0x00, 1}, Sequence{0xC2, 0xDF, 0x80, 0xBF, 2},
        Sequence{0xE0, 0xE0, 0xA0, 0xBF, 3}, Sequence{0xE1, 0xEC, 0x80, 0xBF, 3},
        Sequence{0xED, 0xED, 0x80, 0x9F, 3}, Sequence{0xEE, 0xEF, 0x80, 0xBF, 3},
        Sequence{0xF0, 0xF0, 0x90, 0xBF, 4}, Sequence{0xF1, 0xF3, 0x80, 0xBF, 4},
        Sequence{0xF4, 0xF4, 0x80, 0x8F, 4}};
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (text.empty()) return 0;
    for (const Sequence& sequence : sequences) {
        if (byte(0) < sequence.first_low || byte(0) > sequence.first_high) continue;
        if (text.size() < sequence.length) return 0;
        if (sequence.length > 1 &&
            (byte(1) < sequence.second_low || byte(1) > sequence.second_high))
            return 0;
        for (std::size_t i = 2; i < sequence.length; ++i)
            if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
        return sequence.length;
    }
    return 0;
}

/// The code point of a well-formed character.
constexpr std::uint32_t code_point(std::string_view character) {
    constexpr std::array<unsigned char, 5> first_bits{0, 0x7F, 0x1F, 0x0F, 0x07};
    std::uint32_t result = static_cast<unsigned char>(character[0]) & first_bits[character.size()];
    for (std::size_t i = 1; i < character.size(); ++i)
        result = (result << 6U) | (static_cast<unsigned char>(character[i]) & 0x3FU);
    return result;
}

/// Whether a terminal may act on it, or may show another text than there is: control characters
/// (C0, DEL, C1), marks and overrides of the writing direction, separators of lines and paragraphs,
/// the byte order mark.
constexpr bool is_control(std::uint32_t point) {
    return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x061C || point == 0x200E ||
           point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

/// Text of others (logs, servers, files) that is safe to print on a terminal and to write to a
/// file: UTF-8 without control characters. Line ends and tabs stay; another control character
/// becomes `\u001b`, a byte that is not UTF-8 becomes U+FFFD. Safe text stays as it is, and JSON
/// stays JSON.
std::string printable(std::string_view text);

/// The same in one line: line ends and tabs become blanks.
inline std::string printable_line(std::string_view text) {
    std::string result(text.substr(0, text.find_last_not_of("\r\n") + 1));
    std::replace_if(
        result.begin(), result.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; },
        ' ');
    return printable(result);
}

/// The message of an error; where the system gives no thread or no memory, in plain English with
/// what to do.
std::string plain_words(const std::exception& error);

}  // namespace servetune
