// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/strategy.hpp"

#include <set>

namespace servetune {

/// Feasible configurations drawn uniformly, none twice: the baseline every other strategy has to beat.
class Random : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "random"; }

    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history, Rng& rng) const override {
        std::set<Configuration> seen;
        for (const Trial& trial : history) seen.insert(trial.configuration);
        const FeasibleSet& feasible = problem.feasible;
        const auto seen_count = static_cast<double>(seen.size());
        if (feasible.finite() && seen_count >= feasible.size())
            return Finished{"all " + text_of(feasible.size()) + " configurations are measured"};
        // While less than half of the space is seen a draw is new with at least even odds; else choose among the unseen directly.
        while (!feasible.finite() || seen_count * 2 < feasible.size())
            if (Configuration drawn = feasible.sample(rng); !seen.contains(drawn)) return Proposal{std::move(drawn), "drawn at random"};
        std::vector<Configuration> unseen;
        for (double i = 0; i < feasible.size(); ++i)
            if (Configuration candidate = feasible.at(i); !seen.contains(candidate)) unseen.push_back(std::move(candidate));
        return Proposal{unseen[rng.index(unseen.size())], "drawn at random"};
    }
};

}  // namespace servetune
