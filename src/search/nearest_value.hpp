// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/parameter.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace servetune {

/// The value of a parameter that is `value` elsewhere: the same, or of numbers the nearest.
/// Nothing: it has none.
inline std::optional<Value> nearest_value(const Parameter& parameter, const Value& value) {
    if (parameter.contains(value)) return value;
    const auto wanted = number_of(value);
    if (!wanted || std::holds_alternative<bool>(value) || !parameter.ordered()) return std::nullopt;
    if (const auto* real = std::get_if<RealDomain>(&parameter.domain))
        return std::clamp(*wanted, real->low, real->high);
    std::optional<Value> nearest;
    double least = 0;
    constexpr std::size_t most_levels = 10'000;
    for (std::size_t i = 0; i < std::min(parameter.level_count(), most_levels); ++i) {
        const Value level = parameter.level(i);
        const auto number = number_of(level);
        if (!number) continue;
        const bool ratios = *number > 0 && *wanted > 0;
        const double distance =
            ratios ? std::abs(std::log(*number / *wanted)) : std::abs(*number - *wanted);
        if (nearest && distance >= least) continue;
        nearest = level;
        least = distance;
    }
    return nearest;
}

}  // namespace servetune
