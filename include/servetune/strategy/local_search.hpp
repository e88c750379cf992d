// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/space/neighbours.hpp"
#include "servetune/strategy/random.hpp"
#include "servetune/trial/standings.hpp"

#include <set>
#include <vector>

namespace servetune {

/// Uphill from the default, one step of one parameter at a time; where no neighbour is better, again from a
/// configuration drawn at random (iterated best improvement with random restarts; Hoos and Stuetzle, Stochastic Local
/// Search, 2004, chapter 2).
///
/// The current climb is at the best passing configuration since the last restart. Its neighbours are tried in random
/// order, and the climb moves as soon as one is better by the numbers: with few trials the first improvement is worth
/// more than the best one.
class LocalSearch : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "local_search"; }

    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history, Rng& rng) const override {
        const Standings standings(history, problem.objective, problem.decision, problem.space.default_configuration());
        const Standing* current = climb(problem, standings);
        if (current != nullptr) {
            std::vector<Configuration> untried;
            for (Configuration& neighbour : neighbours(problem.space, current->configuration))
                if (standings.find(neighbour) == nullptr) untried.push_back(std::move(neighbour));
            if (!untried.empty()) return Proposal{untried[rng.index(untried.size())], "beside " + current->configuration.text()};
        }
        if (auto drawn = draw_unseen(problem.feasible, history, rng))
            return Proposal{std::move(*drawn), "no neighbour is better: again from elsewhere"};
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    }

private:
    /// Follows the history: a configuration that is no neighbour of the climb's place begins a new climb there.
    static const Standing* climb(const Problem& problem, const Standings& standings) {
        const Standing* place = nullptr;
        std::set<Configuration> around;
        for (const Standing& standing : standings.all()) {
            const bool begins = !around.contains(standing.configuration);
            const bool better = place == nullptr || !place->passes() ||
                                (standing.passes() && problem.objective.leading().better(standing.estimate().mean, place->estimate().mean));
            if (!begins && !better) continue;
            place = &standing;
            const std::vector<Configuration> next = neighbours(problem.space, standing.configuration);
            around = {next.begin(), next.end()};
        }
        return place != nullptr && place->passes() ? place : nullptr;
    }
};

}  // namespace servetune
