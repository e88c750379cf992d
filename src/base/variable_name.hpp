// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/ranges.hpp"
#include "text.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace servetune {

/// Whether `text` is a name that every shell, container and service manager takes for an
/// environment variable: [A-Za-z_][A-Za-z0-9_]*. Any other one would be cut, be another variable,
/// or be a command in a script.
constexpr bool is_variable_name(std::string_view text) {
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    return !text.empty() && letter(text.front()) &&
           all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// The names of variables that our own scripts use begin with it: nothing that they start may be
/// given such a one.
inline constexpr std::string_view own_variables = "st_";

/// What is wrong with a name for a variable that a study sets; empty: nothing.
inline std::string wrong_with_variable(const std::string& name) {
    if (!is_variable_name(name))
        return "'" + name +
               "' is no name of an environment variable: letters, digits and _ wanted, no digit "
               "first";
    if (name.starts_with(own_variables))
        return "'" + name + "' cannot be set: the scripts that start engines have variables " +
               std::string(own_variables) + "... of their own";
    return "";
}

/// Whether a variable holds a secret by its name: a part of it is KEY, TOKEN, SECRET, PASSWORD or
/// the like. Not where the name says that a secret is elsewhere (`..._FILE`, `..._SOCK`), and not
/// of PWD (the working directory) and PKEY (a partition of an InfiniBand network).
inline bool names_secret(std::string_view variable) {
    constexpr std::array<std::string_view, 8> endings{
        "key", "token", "secret", "password", "passwd", "passphrase", "credential", "credentials"};
    constexpr std::array<std::string_view, 5> whole{"auth", "pass", "pwd", "cookie", "keys"};
    const std::string name = lower_case(std::string(variable));
    for (const std::string_view elsewhere : {"_file", "_path", "_dir", "_sock"})
        if (name.ends_with(elsewhere)) return false;
    if (name == "pwd") return false;
    for (std::size_t at = 0; at <= name.size();) {
        const std::size_t end = std::min(name.find('_', at), name.size());
        const std::string_view part = std::string_view(name).substr(at, end - at);
        const bool ends =
            part != "pkey" && any_of(endings, [&](auto one) { return part.ends_with(one); });
        if (ends || contains(whole, part)) return true;
        at = end + 1;
    }
    return false;
}

}  // namespace servetune
