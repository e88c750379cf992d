// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/acquisition/candidate_pool.hpp"
#include "servetune/model/level_geometry.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace servetune {

/// How many trials come before the model decides: max(4, min(D/2 + 2, a fifth of the budget)). More would be spent blindly (SMAC's quarter of the
/// budget and Kernel Tuner's twenty valid points are what a small budget cannot pay for; shared evidence in docs/optimizer.md).
inline std::size_t start_trials(std::size_t dimensions, std::size_t budget) {
    const auto by_dimensions = dimensions / 2 + 2;
    return std::max<std::size_t>(4, std::min(by_dimensions, budget / 5));
}

/// The next point of a design that fills the space: the candidate that brings most levels of unordered dimensions that nothing tried has, then the farthest
/// from what was tried (maximin; Johnson, Moore, Ylvisaker 1990), by the mean distance over the dimensions, weighted by its chance to work.
/// `chances`: one for each candidate, or empty. Ties: the first. O(candidates tried D).
inline std::size_t farthest(const LevelGeometry& geometry, const CandidatePool& pool, const std::vector<EncodedPoint>& tried,
                            const std::vector<double>& chances) {
    const std::size_t dimensions = geometry.dimensions();
    std::vector<std::set<std::uint32_t>> seen(dimensions);
    for (const EncodedPoint& point : tried)
        for (std::size_t d = 0; d < dimensions; ++d) seen[d].insert(point.levels[d]);
    std::size_t best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < pool.size(); ++i) {
        const EncodedPoint candidate = pool.point(i);
        double fresh = 0;
        for (std::size_t d = 0; d < dimensions; ++d) fresh += seen[d].contains(candidate.levels[d]) ? 0 : 1;
        double nearest = std::numeric_limits<double>::infinity();
        for (const EncodedPoint& point : tried) {
            double distance = 0;
            for (std::size_t d = 0; d < dimensions; ++d) distance += geometry.squared_distance(d, candidate, point);
            nearest = std::min(nearest, distance);
        }
        const double spread = std::sqrt((tried.empty() ? 0 : nearest) / static_cast<double>(std::max<std::size_t>(dimensions, 1)));
        const double score =
            (spread + fresh / static_cast<double>(std::max<std::size_t>(dimensions, 1))) * (chances.empty() ? 1 : chances[i]);
        if (score > best_score) {
            best_score = score;
            best = i;
        }
    }
    return best;
}

}  // namespace servetune
