// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/standings.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A limit that a configuration breaks, by the worst of its measurements.
struct BrokenLimit {
    Limit limit;
    std::string workload{};  ///< empty: the figure of the whole outcome
    double value = 0;
    double by = 0;  ///< how far beyond the bound, as a share of the larger of both: 0 to 2

    /// The limit with the nearest bound of three digits that the value keeps.
    [[nodiscard]] Limit loosened() const;
};

/// The configuration that comes nearest to passing, where none does.
struct Closest {
    Configuration configuration;
    std::vector<BrokenLimit> broken{};  ///< the one that is broken most first
};

/// Of the configurations that nothing but limits keeps from passing, the one whose most broken
/// limit is broken least. Nothing: there is none.
std::optional<Closest> closest_to_passing(const Problem& problem, const Standings& standings);

}  // namespace servetune
