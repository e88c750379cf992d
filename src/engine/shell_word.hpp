// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words of a command as a POSIX shell reads them (POSIX.1-2024, XCU 2.2.2, "Single-Quotes").

#include <string>
#include <string_view>

namespace servetune {

/// In single quotes, whatever stands in it.
inline std::string shell_quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

/// As it is where no character of it means anything to a shell, else in quotes.
inline std::string quoted_where_needed(std::string_view text) {
    constexpr std::string_view safe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+%";
    return !text.empty() && text.find_first_not_of(safe) == std::string_view::npos
               ? std::string(text)
               : shell_quoted(text);
}

}  // namespace servetune
