// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who is best by the means, and the front. Included by standings.hpp.
#include "servetune/detail/base/dominance.hpp"
#include "servetune/detail/trial/standings.hpp"

namespace servetune {

inline const Standing* Standings::best() const {
    const Standing* best = nullptr;
    for (const Standing& standing : standings_) {
        if (!standing.passes()) continue;
        const bool wins = best == nullptr ||
                          goals_.front().better(standing.estimate().mean, best->estimate().mean) ||
                          (standing.estimate().mean == best->estimate().mean &&
                           dominates(turned_means(standing), turned_means(*best)));
        if (wins) best = &standing;
    }
    return best;
}

inline std::vector<double> Standings::turned_means(const Standing& standing) const {
    std::vector<double> result;
    for (std::size_t k = 0; k < goals_.size(); ++k)
        result.push_back(goals_[k].direction == Direction::maximize
                             ? standing.goals[k].estimate.mean
                             : -standing.goals[k].estimate.mean);
    return result;
}

inline std::vector<const Standing*> Standings::front() const {
    std::vector<const Standing*> passing;
    std::vector<std::vector<double>> means;
    for (const Standing& standing : standings_) {
        if (!standing.passes()) continue;
        passing.push_back(&standing);
        means.push_back(turned_means(standing));
    }
    std::vector<const Standing*> result;
    for (const std::size_t i : non_dominated(means)) result.push_back(passing[i]);
    std::stable_sort(result.begin(), result.end(), [&](const Standing* a, const Standing* b) {
        return goals_.front().better(a->estimate().mean, b->estimate().mean);
    });
    return result;
}

}  // namespace servetune
