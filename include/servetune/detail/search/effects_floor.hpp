// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"
#include "servetune/standings.hpp"

#include <cstddef>

namespace servetune {

/// Two levels are said to act together only where so many configurations with a number have both:
/// what one alone gave may be the work of whatever else it has changed, and a model without any
/// tells its prior.
inline constexpr std::size_t least_together = 2;

/// How many configurations with a number it takes before effects of parameters are told: main
/// effects alone have as many unknowns as parameters and one for the level, and one more is the
/// least that can contradict them. Below it an interval would be the prior's alone.
struct EffectsFloor {
    std::size_t measured = 0;  ///< configurations with a number
    std::size_t varied = 0;    ///< parameters that have more than one level

    static EffectsFloor of(const SearchSpace& space, const Standings& standings) {
        EffectsFloor result;
        for (const Standing& standing : standings.all())
            result.measured += standing.measured() == 0 ? 0 : 1;
        for (const Parameter& parameter : space.parameters())
            result.varied += parameter.continuous() || parameter.level_count() > 1 ? 1 : 0;
        return result;
    }
    [[nodiscard]] std::size_t needed() const { return varied + 2; }
    [[nodiscard]] bool enough() const { return measured >= needed(); }
};

}  // namespace servetune
