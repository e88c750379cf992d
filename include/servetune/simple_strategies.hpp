// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"
#include "servetune/standings.hpp"
#include "servetune/strategy.hpp"

#include <optional>
#include <set>
#include <span>
#include <vector>

namespace servetune {

/// A feasible configuration that no trial of the history has, uniform over those; nothing when all
/// are asked.
std::optional<Configuration> draw_unseen(const FeasibleSet& feasible,
                                         std::span<const Trial> history, Rng& rng);

/// Feasible configurations drawn uniformly, none twice: the baseline every other strategy has to
/// beat.
class Random : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "random"; }

    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng& rng) const override {
        if (auto drawn = draw_unseen(problem.feasible, history, rng))
            return Proposal{std::move(*drawn), "drawn at random"};
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    }
};

/// Every feasible configuration once, in the space's own order: the truth about a small space.
class Exhaustive : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "exhaustive"; }

    /// Throws UsageError when the space has continuous parameters.
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng&) const override;
};

/// Uphill from the default, one step of one parameter at a time; where no neighbour is better,
/// again from a configuration drawn at random (iterated best improvement with random restarts; Hoos
/// and Stuetzle, Stochastic Local Search, 2004, chapter 2).
///
/// The current climb is at the best passing configuration since the last restart. Its neighbours
/// are tried in random order, and the climb moves as soon as one is better by the numbers: with few
/// trials the first improvement is worth more than the best one.
class LocalSearch : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "local_search"; }

    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng& rng) const override;

private:
    /// Follows the history: a configuration that is no neighbour of the climb's place begins a new
    /// climb there.
    static const Standing* climb(const Problem& problem, const Standings& standings);
};

}  // namespace servetune
