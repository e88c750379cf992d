// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/strategy.hpp"

#include <optional>
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
        std::optional<Configuration> next;
        double number = 0;
        problem.feasible.for_each([&](const Configuration& candidate) {
            ++number;
            if (!seen.contains(candidate)) next = candidate;
            return !next.has_value();
        });
        if (next) return Proposal{std::move(*next), "configuration " + text_of(number) + " of " + text_of(problem.feasible.size())};
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    }
};

}  // namespace servetune
