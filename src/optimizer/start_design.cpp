// SPDX-License-Identifier: Apache-2.0
#include "servetune/optimizer/start_design.hpp"

#include <cmath>
#include <limits>
#include <set>

namespace servetune {

std::size_t start_trials(std::size_t dimensions, std::size_t budget) {
    const auto by_dimensions = dimensions / 2 + 2;
    return std::max<std::size_t>(4, std::min(by_dimensions, budget / 3));
}

std::size_t farthest(const LevelGeometry& geometry, const CandidatePool& pool, const std::vector<EncodedPoint>& tried,
                     const std::vector<double>& chances, std::uint64_t seed) {
    const std::size_t dimensions = geometry.dimensions();
    std::vector<std::set<std::uint32_t>> seen(dimensions);
    for (const EncodedPoint& point : tried)
        for (std::size_t d = 0; d < dimensions; ++d) seen[d].insert(point.levels[d]);
    std::size_t best = 0;
    double best_score = -std::numeric_limits<double>::infinity();
    const std::size_t from = seed == 0 || pool.size() == 0 ? 0 : Rng(seed).index(pool.size());
    for (std::size_t k = 0; k < pool.size(); ++k) {
        const std::size_t i = (from + k) % pool.size();
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
        const double score = (spread + fresh / static_cast<double>(std::max<std::size_t>(dimensions, 1))) * chances[i];
        if (score > best_score) {
            best_score = score;
            best = i;
        }
    }
    return best;
}

}  // namespace servetune
