// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/strategy.hpp"

#include <set>

namespace servetune {

/// Every feasible configuration once, in the space's own order: the truth about a small space.
class Exhaustive : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "exhaustive"; }

    /// Throws UsageError when the space has continuous parameters.
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history, Rng&) const override {
        std::set<Configuration> seen;
        for (const Trial& trial : history) seen.insert(trial.configuration);
        for (double i = 0; i < problem.feasible.size(); ++i) {
            Configuration next = problem.feasible.at(i);
            if (!seen.contains(next))
                return Proposal{std::move(next), "configuration " + text_of(i + 1) + " of " + text_of(problem.feasible.size())};
        }
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    }
};

}  // namespace servetune
