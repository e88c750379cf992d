// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/strategy.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace servetune {

/// A feasible configuration that no trial of the history has, uniform over those; nothing when all are asked.
inline std::optional<Configuration> draw_unseen(const FeasibleSet& feasible, std::span<const Trial> history, Rng& rng) {
    // While less than half of the space is seen a draw is new with at least even odds. A few comparisons with each
    // trial cost less than sorting them.
    const auto asked = static_cast<double>(history.size());
    while (!feasible.finite() || asked * 2 < feasible.size()) {
        Configuration drawn = feasible.sample(rng);
        const auto same = [&](const Trial& trial) { return trial.configuration == drawn; };
        if (std::none_of(history.begin(), history.end(), same)) return drawn;
    }
    std::set<Configuration> seen;
    for (const Trial& trial : history) seen.insert(trial.configuration);
    const auto seen_count = static_cast<double>(seen.size());
    if (seen_count >= feasible.size()) return std::nullopt;
    while (seen_count * 2 < feasible.size())
        if (Configuration drawn = feasible.sample(rng); !seen.contains(drawn)) return drawn;
    // Else among the unseen directly.
    std::vector<Configuration> unseen;
    feasible.for_each([&](const Configuration& candidate) {
        if (!seen.contains(candidate)) unseen.push_back(candidate);
        return true;
    });
    return unseen[rng.index(unseen.size())];
}

/// Feasible configurations drawn uniformly, none twice: the baseline every other strategy has to beat.
class Random : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "random"; }

    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history, Rng& rng) const override {
        if (auto drawn = draw_unseen(problem.feasible, history, rng)) return Proposal{std::move(*drawn), "drawn at random"};
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    }
};

}  // namespace servetune
