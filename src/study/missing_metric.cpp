// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/missing_metric.hpp"

#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/trial/metric_key.hpp"

namespace servetune {

std::string missing_metric(const Problem& problem, std::span<const Trial> trials,
                           const Trial& trial, const Outcome& outcome) {
    const auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr || !trial.of_search() || !problem.replicates_inform ||
        !problem.decision.believes(*measurement))
        return "";
    const auto known = [measurement, trials](const auto& has) {
        return has(measurement->metrics) ||
               std::any_of(trials.begin(), trials.end(), [&](const Trial& other) {
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

}  // namespace servetune
