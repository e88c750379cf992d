// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/base/printable.hpp"

namespace servetune {

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

}  // namespace servetune
