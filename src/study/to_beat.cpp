// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/to_beat.hpp"

#include "servetune/detail/trial/standings.hpp"

namespace servetune {

std::optional<ToBeat> to_beat(const Problem& problem, std::span<const Trial> trials,
                              const Trial& trial) {
    if (!trial.of_search() || problem.objective.several() ||
        problem.objective.over == Objective::Over::worst ||
        trial.configuration == problem.space.default_configuration())
        return std::nullopt;
    std::vector<Trial> others;
    for (const Trial& other : trials)
        if (other.id != trial.id) others.push_back(other);
    const std::vector<Trial> history = search_history(problem, others);
    const Standings standings(history, problem.objective, problem.decision,
                              problem.space.default_configuration());
    const Standing* best = standings.best();
    const Standing* mine = standings.find(trial.configuration);
    if (best == nullptr || (mine != nullptr && mine->measured() > 0)) return std::nullopt;
    // What a load test prints now: the estimate is without the machine's drift.
    const double now = std::exp(standings.drift().offset(static_cast<double>(trial.id)));
    ToBeat result{problem.objective.leading(),
                  standings.scale().figure(best->estimate().judged() * now)};
    result.noise = standings.noise();
    for (const Standing& standing : standings.all()) {
        if (!standing.passes()) continue;
        for (const Trial* of : standing.trials) {
            const Measurement* measurement = of->measurement();
            if (measurement == nullptr || !problem.decision.believes(*measurement)) continue;
            for (const auto& [workload, metric] :
                 figures_of(measurement->metrics, result.goal.metric)) {
                if (workload.empty()) continue;
                const auto [most, first] =
                    result.of_workloads.emplace(workload, ToBeat::OfWorkload{});
                if (!first && !result.goal.better(metric->value, most->second.figure)) continue;
                const auto took =
                    measurement->metrics.find(MetricKey{"duration_seconds", workload}.text());
                most->second = {metric->value,
                                took == measurement->metrics.end() ? 0 : took->second.value};
            }
        }
    }
    return result;
}

}  // namespace servetune
