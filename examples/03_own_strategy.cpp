// SPDX-License-Identifier: Apache-2.0
// A strategy of your own: go uphill from the best configuration so far. It is a pure function of
// the history, so a study with it can be stopped and resumed like any other.
#include "servetune/standings.hpp"
#include "servetune/study.hpp"

#include <iostream>

using namespace servetune;

class HillClimbing : public Strategy {
public:
    [[nodiscard]] std::string name() const override { return "hill_climbing"; }
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng&) const override {
        const Standings standings = problem.standings(history);
        const Standing* best = standings.best();
        if (best == nullptr) return Finished{"not even the default passes"};
        for (const Configuration& neighbour : neighbours(problem.space, best->configuration))
            if (standings.find(neighbour) == nullptr)
                return Proposal{neighbour, "beside the best so far"};
        return Finished{"no neighbour of " + best->configuration.text() + " is better"};
    }
};

int main() {
    const Problem problem(
        SearchSpace({Parameter::integer("x", 0, 20), Parameter::integer("y", 0, 20)}),
        Objective{"height", Direction::maximize}, Decision{});
    const HillClimbing strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    AskResult asked = study.ask();
    for (; asked.trial() != nullptr; asked = study.ask()) {
        const double x = asked->configuration.number("x") - 13;
        const double y = asked->configuration.number("y") - 7;
        study.tell(asked->id, Measurement{{{"height", {1000 - x * x - y * y}}}});
    }
    std::cout << asked.finished()->why << " (" << study.trials().size() << " trials of "
              << problem.feasible.size() << ")\n";
    return study.recommendation().best == Configuration({{"x", 13}, {"y", 7}}) ? 0 : 1;
}
