// SPDX-License-Identifier: Apache-2.0
#include "servetune/simple_strategies.hpp"

#include "servetune/search_space.hpp"

namespace servetune {

std::optional<Configuration> draw_unseen(const FeasibleSet& feasible,
                                         std::span<const Trial> history, Rng& rng) {
    // While less than half of the space is seen a draw is new with at least even odds. A few
    // comparisons with each trial cost less than sorting them.
    const auto asked = double(history.size());
    while (!feasible.finite() || asked * 2 < feasible.size()) {
        Configuration drawn = feasible.sample(rng);
        const auto same = [&](const Trial& trial) { return trial.configuration == drawn; };
        if (none_of(history, same)) return drawn;
    }
    std::set<Configuration> seen;
    for (const Trial& trial : history) seen.insert(trial.configuration);
    const auto seen_count = double(seen.size());
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

Answer Exhaustive::ask(const Problem& problem, std::span<const Trial> history, Rng&) const {
    std::set<Configuration> seen;
    for (const Trial& trial : history) seen.insert(trial.configuration);
    std::optional<Configuration> next;
    double number = 0;
    problem.feasible.for_each([&](const Configuration& candidate) {
        ++number;
        if (!seen.contains(candidate)) next = candidate;
        return !next.has_value();
    });
    if (next)
        return Proposal{std::move(*next), "configuration " + text_of(number) + " of " +
                                              text_of(problem.feasible.size())};
    return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
}

Answer LocalSearch::ask(const Problem& problem, std::span<const Trial> history, Rng& rng) const {
    const Standings standings = problem.standings(history);
    const Standing* current = climb(problem, standings);
    if (current != nullptr) {
        std::vector<Configuration> untried;
        for (Configuration& neighbour : neighbours(problem.space, current->configuration))
            if (standings.find(neighbour) == nullptr) untried.push_back(std::move(neighbour));
        if (!untried.empty())
            return Proposal{untried[rng.index(untried.size())],
                            "beside " + current->configuration.text()};
    }
    if (auto drawn = draw_unseen(problem.feasible, history, rng))
        return Proposal{std::move(*drawn), "no neighbour is better: again from elsewhere"};
    return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
}

const Standing* LocalSearch::climb(const Problem& problem, const Standings& standings) {
    const Standing* place = nullptr;
    std::set<Configuration> around;
    for (const Standing& standing : standings.all()) {
        const bool begins = !around.contains(standing.configuration);
        const bool better =
            place == nullptr || !place->passes() ||
            (standing.passes() &&
             problem.objective.leading().better(standing.estimate().mean, place->estimate().mean));
        if (!begins && !better) continue;
        place = &standing;
        const std::vector<Configuration> next = neighbours(problem.space, standing.configuration);
        around = {next.begin(), next.end()};
    }
    return place != nullptr && place->passes() ? place : nullptr;
}

}  // namespace servetune
