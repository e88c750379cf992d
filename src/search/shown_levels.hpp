// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence.hpp"
#include "servetune/configuration.hpp"
#include "servetune/parameter.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace servetune {

/// One level of a parameter, of `shown` that are looked at.
struct ShownLevel {
    const Parameter& parameter;
    const Value& level;
    std::size_t shown = 0;
};

/// Whether a configuration has this level. A real, or an integer of more levels than are shown, has
/// the level that is nearest to it.
inline bool holds(const Configuration& configuration, const ShownLevel& wanted) {
    const Value* value = configuration.find(wanted.parameter.name);
    if (value == nullptr) return false;
    if (*value == wanted.level) return true;
    const bool thinned = wanted.parameter.continuous() ||
                         (std::holds_alternative<IntegerDomain>(wanted.parameter.domain) &&
                          wanted.parameter.level_count() > wanted.shown);
    const auto is = number_of(*value);
    const auto should = number_of(wanted.level);
    if (!thinned || !is || !should || wanted.shown < 2) return false;
    const double half_step = 0.5 / static_cast<double>(wanted.shown - 1);
    return std::abs(wanted.parameter.position_of(*is) - wanted.parameter.position_of(*should)) <=
           half_step;
}

/// How many configurations with a number have all of these levels.
inline std::size_t measured_with(const std::vector<ConfigurationEvidence>& evidence,
                                 const std::vector<ShownLevel>& levels) {
    return static_cast<std::size_t>(
        std::count_if(evidence.begin(), evidence.end(), [&](const ConfigurationEvidence& entry) {
            return entry.measured() &&
                   std::all_of(levels.begin(), levels.end(), [&](const ShownLevel& level) {
                       return holds(entry.configuration, level);
                   });
        }));
}

}  // namespace servetune
