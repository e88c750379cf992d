// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"
#include "servetune/error.hpp"

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
        const std::size_t column = newline == npos ? at + 1 : at - newline;
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

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = character_length(text.substr(at));
        const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
        at += character.size();
        if (length == 0) {
            result += "\xEF\xBF\xBD";
            continue;
        }
        const std::uint32_t point = code_point(character);
        if (!is_control(point) || point == '\n' || point == '\t') result += character;
        else if (point == '\r' && at < text.size() && text[at] == '\n')
            continue;  // the line end of other systems
        else {
            constexpr std::string_view digits = "0123456789abcdef";
            result += "\\u";
            for (const unsigned shift : {12U, 8U, 4U, 0U})
                result += digits[(point >> shift) & 0xFU];
        }
    }
    return result;
}

std::string plain_words(const std::exception& error) {
    if (const auto* system = dynamic_cast<const std::system_error*>(&error);
        system != nullptr &&
        system->code() == std::errc::resource_unavailable_try_again)  // of std::thread
        return "cannot start a thread: a limit of this user or container is reached; raise that of "
               "processes (ulimit -u) or of memory "
               "(ulimit -v)";
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
        return "there is not enough memory; raise the limit of this user or container (ulimit -v)";
    return error.what();
}

}  // namespace servetune
