// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/base/redactor.hpp"

#include "base/text.hpp"
#include "servetune/detail/base/ranges.hpp"

namespace servetune {

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string result;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        unsigned bits = 0;
        for (std::size_t k = 0; k < 3; ++k)
            bits =
                bits << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k)
            result += i + k > bytes.size() ? '=' : digits[(bits >> (18 - 6 * k)) & 0x3FU];
    }
    return result;
}

std::vector<std::string> secret_forms(const std::string& secret) {
    std::vector<std::string> result;
    const auto add = [&](const std::string& form) {
        if (!contains(result, form)) result.push_back(form);
    };
    const auto hexadecimal = [](unsigned number, int digits, bool upper) {
        std::string text;
        for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
            text += (upper ? "0123456789ABCDEF"
                           : "0123456789abcdef")[(number >> static_cast<unsigned>(shift)) & 0xFU];
        return text;
    };
    std::string in_shell, in_json, in_ascii_json, in_url, lower_hex, upper_hex;
    for (const char c : secret) {
        const auto byte = static_cast<unsigned char>(c);
        const bool letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        in_shell += c == '\'' ? std::string("'\\''") : std::string(1, c);
        in_url +=
            letter || contains("-._~", c) ? std::string(1, c) : "%" + hexadecimal(byte, 2, true);
        lower_hex += hexadecimal(byte, 2, false);
        upper_hex += hexadecimal(byte, 2, true);
    }
    for (std::size_t at = 0; at < secret.size();) {
        const std::size_t length =
            std::max<std::size_t>(character_length(std::string_view(secret).substr(at)), 1);
        const std::string_view character = std::string_view(secret).substr(at, length);
        at += length;
        const char c = character.front();
        const auto short_escape = std::string_view("\"\\\b\f\n\r\t").find(c);
        std::string escaped(character);
        if (short_escape != npos) escaped = std::string("\\") + "\"\\bfnrt"[short_escape];
        else if (static_cast<unsigned char>(c) < 0x20)
            escaped = "\\u" + hexadecimal(static_cast<unsigned char>(c), 4, false);
        in_json += escaped;
        const std::uint32_t point = length > 1 ? code_point(character) : 0;
        if (point > 0xFFFF)
            in_ascii_json += "\\u" + hexadecimal(0xD800 + ((point - 0x10000) >> 10U), 4, false) +
                             "\\u" + hexadecimal(0xDC00 + ((point - 0x10000) & 0x3FFU), 4, false);
        else in_ascii_json += point > 0x7E ? "\\u" + hexadecimal(point, 4, false) : escaped;
    }
    for (const std::string& form :
         {secret, in_shell, in_json, in_ascii_json, in_url, lower_hex, upper_hex})
        add(form);
    for (std::size_t before = 0; before < 3;
         ++before) {  // bytes that share a group of three with its first
        const std::string bytes = std::string(before, '\0') + secret;
        const std::string all = base64(bytes);
        // Only digits that no other byte has a part in.
        const std::string own = all.substr(before == 0 ? 0 : before + 1,
                                           bytes.size() * 8 / 6 - (before == 0 ? 0 : before + 1));
        for (std::string form : {before == 0 ? all : own, own}) {
            add(form);
            std::replace(form.begin(), form.end(), '+', '-');
            std::replace(form.begin(), form.end(), '/', '_');
            add(form);
        }
    }
    return result;
}

}  // namespace servetune
