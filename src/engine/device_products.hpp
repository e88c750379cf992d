// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many devices a server takes, as text of a rule: a product for each set of factors that share
// devices under a condition.

#include "condition_text.hpp"
#include "servetune/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace servetune {

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
