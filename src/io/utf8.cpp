// SPDX-License-Identifier: Apache-2.0
#include "servetune/io/utf8.hpp"

#include "servetune/base/error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace servetune {
namespace {

/// The well-formed sequences of RFC 3629, section 4: the first byte's range, the second's, and how many bytes there are.
struct Sequence {
    unsigned char first_low, first_high, second_low, second_high;
    std::size_t length;
};
constexpr std::array sequences{
    Sequence{0x01, 0x7F, 0x00, 0x00, 1}, Sequence{0xC2, 0xDF, 0x80, 0xBF, 2}, Sequence{0xE0, 0xE0, 0xA0, 0xBF, 3},
    Sequence{0xE1, 0xEC, 0x80, 0xBF, 3}, Sequence{0xED, 0xED, 0x80, 0x9F, 3}, Sequence{0xEE, 0xEF, 0x80, 0xBF, 3},
    Sequence{0xF0, 0xF0, 0x90, 0xBF, 4}, Sequence{0xF1, 0xF3, 0x80, 0xBF, 4}, Sequence{0xF4, 0xF4, 0x80, 0x8F, 4}};

/// How many bytes the character at the start of `text` has; 0 when it is none.
std::size_t character_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    for (const Sequence& sequence : sequences) {
        if (byte(0) < sequence.first_low || byte(0) > sequence.first_high) continue;
        if (text.size() < sequence.length) return 0;
        if (sequence.length > 1 && (byte(1) < sequence.second_low || byte(1) > sequence.second_high)) return 0;
        for (std::size_t i = 2; i < sequence.length; ++i)
            if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
        return sequence.length;
    }
    return 0;
}

}  // namespace

std::string_view utf8_text(std::string_view bytes, const std::string& name) {
    if (bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = character_length(bytes.substr(at));
        at += length;
        if (length > 0) continue;
        const std::string_view before = bytes.substr(0, at);
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const auto newline = before.rfind('\n');
        const std::size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
        constexpr std::string_view digits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(bytes[at]);
        throw ParseError(name + ":" + std::to_string(line) + ":" + std::to_string(column) + ": UTF-8 text wanted, got the byte 0x" +
                         digits[byte / 16] + digits[byte % 16] + "; save the file as UTF-8");
    }
    return bytes;
}

}  // namespace servetune
