// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/strategy.hpp"

#include <optional>
#include <set>
#include <vector>

namespace servetune {

/// A feasible configuration that is not in `seen`, uniform over those; nothing when all are.
inline std::optional<Configuration> draw_unseen(const FeasibleSet& feasible, const std::set<Configuration>& seen, Rng& rng) {
    const auto seen_count = static_cast<double>(seen.size());
    if (feasible.finite() && seen_count >= feasible.size()) return std::nullopt;
    // While less than half of the space is seen a draw is new with at least even odds; else choose among the unseen directly.
    while (!feasible.finite() || seen_count * 2 < feasible.size())
        if (Configuration drawn = feasible.sample(rng); !seen.contains(drawn)) return drawn;
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
        std::set<Configuration> seen;
        for (const Trial& trial : history) seen.insert(trial.configuration);
        if (auto drawn = draw_unseen(problem.feasible, seen, rng)) return Proposal{std::move(*drawn), "drawn at random"};
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    }
};

}  // namespace servetune
