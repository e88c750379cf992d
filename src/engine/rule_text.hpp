// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parts of rules, as text: conditions of engine files, and how many devices a server takes.

#include "servetune/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
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

/// A product for each set of factors that share devices under a condition.
struct DeviceProduct {
    std::string conditions{};  ///< of those left out, each with ` and ` behind it
    std::string product{};     ///< `tp * pp`; empty: all are left out
};

/// `text`: of a factor; `prefix`: before the names in conditions.
inline std::vector<DeviceProduct> device_products(
    const Engine& engine, const std::vector<DeviceFactor>& factors, const std::string& prefix,
    const std::function<std::string(const DeviceFactor&)>& text) {
    std::vector<DeviceProduct> result;
    for (std::size_t shared = 0; shared < (std::size_t{1} << factors.size()); ++shared) {
        DeviceProduct one;
        bool possible = true;
        for (std::size_t i = 0; i < factors.size(); ++i) {
            if ((shared >> i & 1U) == 0) {
                one.product += (one.product.empty() ? "" : " * ") + text(factors[i]);
                continue;
            }
            possible = possible && !factors[i].unless.empty();
            for (Condition condition : factors[i].unless) {
                possible = possible && engine.find(condition.parent) != nullptr;
                condition.parent.insert(0, prefix);
                one.conditions += text_of_conditions({condition}) + " and ";
            }
        }
        if (possible) result.push_back(std::move(one));
    }
    return result;
}

}  // namespace servetune
