// SPDX-License-Identifier: Apache-2.0
#include "trial_rules.hpp"

#include "base/nearest.hpp"
#include "servetune/budget.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/standings.hpp"

namespace servetune {

std::optional<Incumbent> to_beat(const Problem& problem, std::span<const Trial> trials,
                                 const Trial& trial) {
    if (!trial.of_search() || problem.objective.several() ||
        trial.configuration == problem.space.default_configuration())
        return std::nullopt;
    std::vector<Trial> others;
    for (const Trial& other : trials)
        if (other.id != trial.id) others.push_back(other);
    const std::vector<Trial> history = search_history(problem, others);
    const Standings standings = problem.standings(history);
    const Standing* best = standings.best();
    const Standing* mine = standings.find(trial.configuration);
    if (best == nullptr || (mine != nullptr && mine->measured() > 0)) return std::nullopt;
    // What a load test prints now: the estimate is without the machine's drift.
    const double now = std::exp(standings.drift().offset(double(trial.id)));
    Incumbent result{problem.objective.leading(),
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
                    result.of_workloads.emplace(workload, Incumbent::OfWorkload{});
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

bool default_again_is_due(const Problem& problem, std::span<const Trial> history,
                          std::size_t every) {
    if (every == 0 || !problem.replicates_inform) return false;
    std::size_t others = 0;
    for (const Trial& trial : history) {
        if (trial.configuration != problem.space.default_configuration()) ++others;
        else if (const Failure* failure = trial.failure();
                 failure != nullptr && teaches(failure->kind))
            return false;
        else others = 0;
    }
    return others >= every;
}

std::string missing_metric(const Problem& problem, std::span<const Trial> trials,
                           const Trial& trial, const Outcome& outcome) {
    const auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr || !trial.of_search() || !problem.replicates_inform ||
        !problem.decision.believes(*measurement))
        return "";
    const auto known = [measurement, trials](const auto& has) {
        return has(measurement->metrics) || any_of(trials, [&](const Trial& other) {
                   return other.of_search() && other.measurement() != nullptr &&
                          has(other.measurement()->metrics);
               });
    };
    const auto text = [&](const std::string& whose, const std::string& metric) {
        std::vector<std::string> names;
        bool of_workloads = false;
        for (const auto& [name, value] : measurement->metrics) {
            names.push_back(name);
            const MetricKey key = MetricKey::of(name);
            of_workloads = of_workloads || (key.name == metric && !key.workload.empty());
        }
        return whose + " '" + metric + "' is missing; the measurement has: " +
               (names.empty() ? "nothing" : listed(nearest_first(metric, names))) +
               (of_workloads ? ". Workloads have a common figure only where none is below 0; name "
                               "the metric of one of them"
                             : ". Measure it, or name another one in the study");
    };
    for (const Goal& goal : problem.objective.goals)
        if (!known([&](const Metrics& metrics) { return metrics.contains(goal.metric); }))
            return text("the objective's metric", goal.metric);
    for (const Limit& limit : problem.objective.limits)
        if (!known([&](const Metrics& metrics) { return !limit.figures(metrics).empty(); }))
            return text("the metric of the limit '" + limit.text() + "',", limit.metric);
    return "";
}

const Failure* common_failure(std::span<const Trial> trials, std::size_t since,
                              std::size_t enough) {
    if (enough == 0) return nullptr;
    const Failure* first = nullptr;
    std::size_t failed = 0;
    for (const Trial& trial : trials) {
        if (!trial.of_search() || !trial.told()) continue;
        const Failure* failure = trial.failure();
        if (failure == nullptr || failure->kind == FailureKind::not_in_table) return nullptr;
        if (trial.id < since) continue;
        if (first != nullptr && failure->kind != first->kind) return nullptr;
        if (first == nullptr) first = failure;
        ++failed;
    }
    return failed >= enough ? first : nullptr;
}

EvaluationContext context_of(const Problem& problem, std::span<const Trial> trials,
                             const Trial& trial, std::stop_token stop) {
    const bool again = any_of(trials, [&](const Trial& other) {
        return other.id < trial.id && other.workload == trial.workload &&
               other.configuration == trial.configuration;
    });
    return {trial.id, trial.seed, trial.workload, std::move(stop), to_beat(problem, trials, trial),
            again};
}

bool falls_count(std::span<const Trial> trials, const Configuration& usual) {
    return none_of(
        trials, [&](const Trial& trial) { return trial.fell() && trial.configuration == usual; });
}

std::string Budget::why_invalid() const {
    constexpr double never = std::numeric_limits<double>::infinity();
    return OptionCheck()
        .within("wall_clock_seconds", wall_clock_seconds, 0, never)
        .within("until", until, 0, never)
        .within("first_trial_seconds", first_trial_seconds, 0, never)
        .seconds("serves_seconds", serves_seconds)
        .text();
}

}  // namespace servetune
