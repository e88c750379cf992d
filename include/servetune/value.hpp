// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

namespace servetune {

/// The level "leave it to the engine": no flag is passed. It is written `engine` in YAML, tables
/// and on the command line, and it is a level of its own: "unset" and "set to the engine's default
/// value" are different configurations.
struct Unset {
    friend auto operator<=>(const Unset&, const Unset&) = default;
};

/// What a parameter can be set to. Integers and reals are different types: 512 is not 512.0.
using Value = std::variant<Unset, bool, std::int64_t, double, std::string>;

inline constexpr std::string_view unset_text = "engine";

inline bool is_unset(const Value& value) { return std::holds_alternative<Unset>(value); }

/// `engine`, `true`, `512`, `0.9` or the string itself.
std::string text_of(const Value& value);

/// The whole of `text` as an integer; nothing when any character is left over or it does not fit 64
/// bits.
inline std::optional<std::int64_t> integer_of(std::string_view text) {
    std::int64_t result = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return result;
}

/// The whole of `text` as a finite real number; nothing when any character is left over.
inline std::optional<double> real_of(std::string_view text) {
    double result = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(result))
        return std::nullopt;
    return result;
}

/// The value that a plain scalar stands for, as in YAML's core schema: `engine`, true/false,
/// integer, real, else string.
inline Value value_of(std::string_view text) {
    if (text == unset_text) return Unset{};
    if (text == "true") return true;
    if (text == "false") return false;
    if (const auto integer = integer_of(text)) return *integer;
    if (const auto real = real_of(text)) return *real;
    return std::string(text);
}

/// The number that an integer or a real is; nothing for the other types.
inline std::optional<double> number_of(const Value& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return double(*integer);
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return std::nullopt;
}

}  // namespace servetune
