// SPDX-License-Identifier: Apache-2.0
#include "utf8.hpp"

#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cstddef>

namespace servetune {

std::string_view utf8_text(std::string_view bytes, const std::string& name) {
    if (bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t length = bytes[at] == '\0' ? 0 : character_length(bytes.substr(at));
        at += length;
        if (length > 0) continue;
        const std::string_view before = bytes.substr(0, at);
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const auto newline = before.rfind('\n');
        const std::size_t column = newline == std::string_view::npos ? at + 1 : at - newline;
        constexpr std::string_view digits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(bytes[at]);
        throw ParseError(name + ":" + std::to_string(line) + ":" + std::to_string(column) +
                         ": UTF-8 text wanted, got the byte 0x" + digits[byte / 16] +
                         digits[byte % 16] + "; save the file as UTF-8");
    }
    return bytes;
}

std::string start_of(std::string_view text, std::size_t longest) {
    if (text.size() <= longest) return std::string(text);
    const auto continues = [&] {
        return (static_cast<unsigned char>(text[longest]) & 0xC0U) == 0x80U;
    };
    while (longest > 0 && continues()) --longest;
    return std::string(text.substr(0, longest)) + "...";
}

}  // namespace servetune
