// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/redactor.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace servetune {

/// `user:password` of `http://user:password@host/`, as it is written there; empty where there is none.
inline std::string_view user_info_of(std::string_view url) {
    const std::size_t scheme = url.find("://");
    const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
    const std::string_view rest = url.substr(begin, url.find_first_of("?#", begin) - begin);
    const std::size_t at = rest.rfind('@');  // a password with a '/' that should have been %2F is none that may be shown either
    return at == std::string_view::npos ? std::string_view() : rest.substr(0, at);
}

/// The URL without user and password: what may be printed.
inline std::string without_user_info(std::string_view url) {
    const std::string_view user = user_info_of(url);
    if (user.data() == nullptr) return std::string(url);
    const auto begin = static_cast<std::size_t>(user.data() - url.data());
    return std::string(url.substr(0, begin)).append(url.substr(begin + user.size() + 1));
}

/// What an HTTP server is sent for them (RFC 4648): it may send it back.
inline std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string result;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        unsigned bits = 0;
        for (std::size_t k = 0; k < 3; ++k) bits = bits << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        for (std::size_t k = 0; k < 4; ++k) result += i + k > bytes.size() ? '=' : digits[(bits >> (18 - 6 * k)) & 0x3FU];
    }
    return result;
}

/// Adds the password of a URL to the secrets: as it is written, without its `%40`, and as a header has it.
inline void add_user_info(Redactor& secrets, std::string_view url) {
    const std::string_view user = user_info_of(url);
    if (user.empty()) return;
    std::string decoded;
    for (std::size_t i = 0; i < user.size(); ++i) {
        const auto digit = [&](std::size_t at) {
            constexpr std::string_view digits = "0123456789abcdefABCDEF";
            const std::size_t found = at < user.size() ? digits.find(user[at]) : std::string_view::npos;
            return found == std::string_view::npos ? -1 : static_cast<int>(found < 16 ? found : found - 6);
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
