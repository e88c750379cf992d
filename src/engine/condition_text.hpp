// SPDX-License-Identifier: Apache-2.0
#pragma once

// Conditions of engine files, as parts of rules.

#include "servetune/parameter.hpp"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace servetune {

/// `enable_dp_attention in [true]`, all of them joined by `and`.
inline std::string text_of_conditions(const std::vector<Condition>& conditions) {
    std::string result;
    for (const Condition& condition : conditions) {
        result += (result.empty() ? "" : " and ") + condition.parent + " in [";
        for (std::size_t i = 0; i < condition.values.size(); ++i) {
            const auto* text = std::get_if<std::string>(&condition.values[i]);
            result += (i == 0 ? "" : ", ") +
                      (text != nullptr ? "'" + *text + "'" : text_of(condition.values[i]));
        }
        result += "]";
    }
    return result;
}

/// Values that a rule names, and `Unset` where that stands for one of them: no flag gives the
/// engine's own default.
inline std::vector<Value> with_unset(std::vector<Value> values, const Parameter& declared) {
    const Value usual = is_unset(declared.default_value)
                            ? declared.value_when_unset.value_or(Unset{})
                            : declared.default_value;
    if (!is_unset(usual) && std::find(values.begin(), values.end(), usual) != values.end())
        values.emplace_back(Unset{});
    return values;
}

}  // namespace servetune
