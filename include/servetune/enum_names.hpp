// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace servetune {

/// The enumerators of an enumeration with their names, which stand in the order of the enumerators:
///
///     inline constexpr auto verdicts = enum_names<Verdict>("sound", "unchecked", ...);
template <class Enum, class... Names>
constexpr auto enum_names(Names... names) {
    std::array<std::pair<Enum, std::string_view>, sizeof...(Names)> result{};
    std::size_t i = 0;
    for (const std::string_view name : {std::string_view(names)...}) {
        result[i] = {static_cast<Enum>(i), name};
        ++i;
    }
    return result;
}

/// The name of an enumerator in such a table, and back.
template <class Enum, std::size_t n>
constexpr std::string_view name_in(const std::array<std::pair<Enum, std::string_view>, n>& table,
                                   Enum value) {
    for (const auto& [enumerator, name] : table)
        if (enumerator == value) return name;
    return "unknown";
}
template <class Enum, std::size_t n>
constexpr std::optional<Enum> named_in(
    const std::array<std::pair<Enum, std::string_view>, n>& table, std::string_view wanted) {
    for (const auto& [enumerator, name] : table)
        if (name == wanted) return enumerator;
    return std::nullopt;
}

}  // namespace servetune
