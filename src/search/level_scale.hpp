// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/parameter.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace servetune {

/// Whether its numbers have positions and no levels of their own in a model: reals, and integers of
/// so many levels that a table of distances, quadratic in them, would fill gigabytes.
inline bool has_positions(const Parameter& parameter) {
    constexpr std::size_t most_levels = 1024;  // 8 MB a table
    return parameter.continuous() || (std::holds_alternative<IntegerDomain>(parameter.domain) &&
                                      parameter.level_count() > most_levels);
}

/// Whether its numbers differ by ratios.
inline bool logarithmic(const Parameter& parameter) {
    if (const auto* range = std::get_if<IntegerDomain>(&parameter.domain))
        return range->scale != Scale::linear && range->low > 0;
    const auto* choice = std::get_if<ChoiceDomain>(&parameter.domain);
    if (choice == nullptr || !choice->ordered) return false;
    double low = 0;
    double high = 0;
    for (const Value& value : choice->values) {
        const auto number = number_of(value);
        if (!number || !(*number > 0)) return false;
        low = low == 0 ? *number : std::min(low, *number);
        high = std::max(high, *number);
    }
    // 64, 128, 256, ...: steps of ratios; 28672, 30720, 32768: of differences, and there it hardly
    // matters
    constexpr double spans = 4;
    return low > 0 && high / low >= spans;
}

/// What places the levels of ordered parameters: their numbers, or, in lists that are not of
/// numbers alone (`0, 16, all`), their ranks.
enum class LevelMarks { numbers, logarithms, ranks };

/// One for parameters that share a scale.
inline LevelMarks marks_of(const std::vector<const Parameter*>& parameters) {
    for (const Parameter* parameter : parameters)
        for (std::size_t level = 0; level < parameter->level_count(); ++level)
            if (const Value value = parameter->level(level); !is_unset(value) && !number_of(value))
                return LevelMarks::ranks;
    return logarithmic(*parameters.front()) ? LevelMarks::logarithms : LevelMarks::numbers;
}

/// Where a value is on the scale, not yet in [0, 1]; nothing where that is not known.
inline std::optional<double> mark_of(const Parameter& parameter, const Value& value,
                                     LevelMarks marks) {
    if (is_unset(value)) return std::nullopt;
    if (marks == LevelMarks::ranks) {
        const auto rank = parameter.level_of(value);
        return rank ? std::optional(double(*rank)) : std::nullopt;
    }
    const auto number = number_of(value);
    if (!number || marks == LevelMarks::numbers) return number;
    return *number > 0 ? std::optional(std::log(*number)) : std::nullopt;
}

}  // namespace servetune
