// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/redactor.hpp"

namespace servetune {

/// `user:password` of `http://user:password@host/`, as it is written there; empty where there is
/// none.
inline std::string_view user_info_of(std::string_view url) {
    const std::size_t scheme = url.find("://");
    const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
    const std::string_view rest = url.substr(begin, url.find_first_of("?#", begin) - begin);
    const std::size_t at = rest.rfind(
        '@');  // a password with a '/' that should have been %2F is none that may be shown either
    return at == std::string_view::npos ? std::string_view() : rest.substr(0, at);
}

/// The URL without user and password: what may be printed.
inline std::string without_user_info(std::string_view url) {
    const std::string_view user = user_info_of(url);
    if (user.data() == nullptr) return std::string(url);
    const auto begin = std::size_t(user.data() - url.data());
    return std::string(url.substr(0, begin)).append(url.substr(begin + user.size() + 1));
}

/// Adds the password of a URL to the secrets: as it is written, without its `%40`, and as a header
/// has it, which a server may send back.
inline void add_user_info(Redactor& secrets, std::string_view url) {
    const std::string_view user = user_info_of(url);
    if (user.empty()) return;
    std::string decoded;
    for (std::size_t i = 0; i < user.size(); ++i) {
        const auto digit = [&](std::size_t at) {
            constexpr std::string_view digits = "0123456789abcdefABCDEF";
            const std::size_t found =
                at < user.size() ? digits.find(user[at]) : std::string_view::npos;
            return found == std::string_view::npos
                       ? -1
                       : static_cast<int>(found < 16 ? found : found - 6);
        };
        const bool escaped = user[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0;
        decoded += escaped ? static_cast<char>(16 * digit(i + 1) + digit(i + 2)) : user[i];
        if (escaped) i += 2;
    }
    for (const std::string_view one : {user, std::string_view(decoded)}) {
        secrets.add(std::string(one.substr(one.find(':') + 1)));  // without ':' a token
        secrets.add(base64(one));
    }
}

}  // namespace servetune
