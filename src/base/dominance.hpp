// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace servetune {

/// Whether `a` is nowhere worse than `b` and somewhere better (Pareto). More is better in every
/// coordinate; as many of both.
inline bool dominates(std::span<const double> a, std::span<const double> b) {
    bool better = false;
    for (std::size_t k = 0; k < a.size(); ++k) {
        if (a[k] < b[k]) return false;
        better = better || a[k] > b[k];
    }
    return better;
}

/// Indices of the points that no other dominates, in their order. Equal points stay together.
/// O(n^2).
inline std::vector<std::size_t> non_dominated(const std::vector<std::vector<double>>& points) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < points.size(); ++i) {
        bool beaten = false;
        for (std::size_t j = 0; j < points.size() && !beaten; ++j)
            beaten = dominates(points[j], points[i]);
        if (!beaten) result.push_back(i);
    }
    return result;
}

}  // namespace servetune
