// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/value.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace servetune {

/// A value for `yaml_document`.
inline nlohmann::ordered_json value_tree(const Value& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    if (const auto* number = std::get_if<double>(&value)) return *number;
    if (const auto* truth = std::get_if<bool>(&value)) return *truth;
    if (is_unset(value)) return nullptr;
    return text_of(value);
}

/// `{choice: [...], ordered: true, default: ...}` of a parameter; numbers are ordered.
inline nlohmann::ordered_json choice_tree(std::vector<Value> values,
                                          const std::optional<Value>& start) {
    const bool numbers = std::all_of(values.begin(), values.end(), [](const Value& value) {
        return is_unset(value) || number_of(value).has_value();
    });
    if (numbers)
        std::stable_sort(values.begin(), values.end(), [](const Value& a, const Value& b) {
            return number_of(a).value_or(-INFINITY) < number_of(b).value_or(-INFINITY);
        });
    nlohmann::ordered_json tree;
    for (const Value& value : values) tree["choice"].push_back(value_tree(value));
    if (numbers) tree["ordered"] = true;
    if (start) tree["default"] = value_tree(*start);
    return tree;
}

}  // namespace servetune
