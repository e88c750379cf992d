// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace servetune {

/// At most `most` of the numbers below `count`, evenly spread, both ends among them; `most` is at
/// least 2.
inline std::vector<std::size_t> evenly_spread(std::size_t count, std::size_t most) {
    std::vector<std::size_t> result(std::min(count, most));
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = count <= most ? i : i * (count - 1) / (most - 1);
    return result;
}

/// At most `most` levels of a parameter, at least 2, evenly spread on its scale, both ends among
/// them.
std::vector<std::size_t> spread_levels(const Parameter& parameter, std::size_t most);

/// Whether its steps are parts of its scale: an integer whose numbers differ by ratios, or one of
/// so many levels that a step of one would be nothing.
inline bool steps_on_its_scale(const Parameter& parameter) {
    constexpr std::size_t most_levels = 1024;
    const std::size_t numbers = parameter.level_count() - (parameter.offers_unset ? 1 : 0);
    return parameter.by_ratio() ||
           (std::holds_alternative<IntegerDomain>(parameter.domain) && numbers > most_levels);
}

/// The levels beside `Unset`, ascending: the value that the engine uses by itself, where that is
/// known; else all, of an ordered parameter with many levels 32 of them, evenly spread: all of a
/// thousand would be neighbours for hours.
std::vector<std::size_t> levels_beside_unset(const Parameter& parameter);

/// The levels one step away from `level` of a parameter, ascending: the next lower and higher one
/// when it is ordered, every other one otherwise; of an integer on a logarithmic scale or of more
/// than 1024 levels those a tenth and a hundredth of its scale lower and higher, at least one
/// level; for `Unset` those beside it (`levels_beside_unset`), which have it beside them.
std::vector<std::size_t> adjacent_levels(const Parameter& parameter, std::size_t level);

/// The feasible configurations one step from `configuration`: one parameter moved to an adjacent
/// level (a real: a tenth or a hundredth of its scale up or down). A step that makes parameters
/// appear gives them their defaults, and a step that makes parameters vanish is one only when they
/// are at their defaults: so `a` is a neighbour of `b` exactly when `b` is one of `a` (apart from
/// reals and from integers that step on their scale: a step back is rounded, and ends at the ends
/// of the scale). Sorted, none twice.
std::vector<Configuration> neighbours(const SearchSpace& space, const Configuration& configuration);

}  // namespace servetune
