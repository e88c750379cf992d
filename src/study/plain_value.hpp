// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/parameter.hpp"

#include <cmath>

// Values as people and programs write them, in the type that a parameter has.

namespace servetune {

/// The number that text such as "64" is, and the integer that a number such as 64.0 is (within
/// 2^53). Others stay as they are.
inline Value plain_value(Value value) {
    if (const auto* text = std::get_if<std::string>(&value))
        if (Value read = value_of(*text); number_of(read) || std::holds_alternative<bool>(read))
            value = std::move(read);
    constexpr double exact = 9007199254740992.0;  // 2^53: beyond it not every integer is a double
    if (const auto* real = std::get_if<double>(&value);
        real != nullptr && std::abs(*real) <= exact && std::trunc(*real) == *real)
        return std::int64_t(*real);
    return value;
}

/// A value as the parameter has it, where only its type differs: not every language tells 3 from
/// 3.0, and digits may be text in a space. Otherwise as `plain_value`.
inline Value as_parameter_has_it(const Parameter& parameter, const Value& value) {
    if (parameter.contains(value)) return value;
    const Value plain = plain_value(value);
    if (parameter.contains(plain)) return plain;
    if (const auto number = number_of(plain); number && parameter.contains(*number)) return *number;
    const std::string text = text_of(value);
    return parameter.contains(text) ? Value(text) : plain;
}

/// The same of a plain text: a table's cell, a word of the command line.
inline Value read_for(const Parameter& parameter, const std::string& text) {
    const Value value = value_of(text);
    return parameter.contains(value) || !parameter.contains(text)
               ? as_parameter_has_it(parameter, value)
               : Value(text);
}

}  // namespace servetune
