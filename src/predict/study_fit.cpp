// SPDX-License-Identifier: Apache-2.0
#include "study_fit.hpp"

#include "engine/load_level.hpp"
#include "servetune/outcome.hpp"

#include <array>
#include <cmath>
#include <string_view>

namespace servetune {
namespace {

/// A figure that the model is held against: its names in the order of preference, and the standard
/// deviation of ln of what a fitted model says of it (1.48 x the median residual over seven
/// published tables: 0.08, 0.89 and 0.09). The first token's is large: an estimate of means knows
/// no bursts.
struct SpeedFigure {
    std::array<std::string_view, 3> names;
    double deviation;
};
constexpr std::array<SpeedFigure, 3> speed_figures{
    {{{"total_tokens_per_second", "output_tokens_per_second", "requests_per_second"}, 0.1},
     {{"time_to_first_token_mean_seconds", "time_to_first_token_p50_seconds", ""}, 0.9},
     {{"time_per_output_token_mean_seconds", "time_per_output_token_p50_seconds", ""}, 0.1}}};

double deviation_of(std::string_view name) {
    for (const SpeedFigure& figure : speed_figures)
        if (contains(figure.names, name)) return figure.deviation;
    return 1;
}

/// Of one workload; `suffix`: how a study of several workloads names its figures.
std::map<std::string, double> speeds_in(const Metrics& metrics, const std::string& workload) {
    std::map<std::string, double> result;
    for (const SpeedFigure& alike : speed_figures)
        for (const std::string_view name : alike.names) {
            const auto found =
                name.empty() ? metrics.end() : metrics.find(MetricKey{name, workload}.text());
            if (found == metrics.end() || !(found->second.value > 0) ||
                !std::isfinite(found->second.value))
                continue;
            result[std::string(name)] = std::log(found->second.value);
            break;
        }
    return result;
}

}  // namespace

std::vector<double> SpeedRow::errors(const SpeedFactors& factors) const {
    std::vector<double> result;
    const ServingTarget machine{target.model, target.hardware, scaled(target.traits, factors)};
    const QuickEstimate estimate = quick_estimate(CostModel(machine, settings), means, arrival);
    for (const auto& [name, value] : measured)
        if (const auto predicted = estimate.metric(name);
            predicted && *predicted > 0 && std::isfinite(*predicted))
            result.push_back(weight * std::log(*predicted / value) / deviation_of(name));
    return result;
}

std::vector<MeasuredSpeed> measured_speeds(std::span<const Trial> history, const Decision& decision,
                                           const std::vector<std::string>& workloads) {
    struct Sums {
        MeasuredSpeed logs;
        double count = 0;
    };
    std::vector<Sums> found;
    for (const Trial& trial : history) {
        const Measurement* measurement = trial.measurement();
        if (!trial.of_search() || measurement == nullptr || !decision.believes(*measurement) ||
            measurement->validity.ended_early())
            continue;
        MeasuredSpeed logs{trial.configuration, {}};
        for (const std::string& workload : workloads)
            if (auto figures =
                    speeds_in(measurement->metrics, workloads.size() > 1 ? workload : "");
                !figures.empty())
                logs.figures[workload] = std::move(figures);
        if (logs.figures.empty()) continue;
        const auto same = [&](const Sums& one) {
            return one.logs.configuration == trial.configuration;
        };
        const auto known = find_if(found, same);
        if (known == found.end()) {
            found.push_back({std::move(logs), 1});
            continue;
        }
        if (any_of(logs.figures, [&](const auto& one) {  // it told less than the first
                const auto* all = entry_in(known->logs.figures, one.first);
                return all == nullptr || all->size() != one.second.size();
            }))
            continue;
        ++known->count;
        for (auto& [workload, figures] : logs.figures)
            for (auto& [name, sum] : known->logs.figures[workload]) sum += figures[name];
    }
    std::vector<MeasuredSpeed> result;
    for (Sums& one : found) {
        for (auto& [workload, figures] : one.logs.figures)
            for (auto& [name, sum] : figures) sum = std::exp(sum / one.count);
        result.push_back(std::move(one.logs));
    }
    return result;
}

SpeedFactors factors_of(const SimulateEvaluator& evaluator,
                        const std::vector<MeasuredSpeed>& measured) {
    std::vector<SpeedErrors> rows;
    for (const MeasuredSpeed& one : measured) {
        const SimulateEvaluator::Started started = evaluator.started(one.configuration);
        if (started.failure || !started.cost) continue;
        ServingTarget target = started.cost->target();
        target.traits.log.clear();  // each prediction copies the traits
        for (const SimulatedWorkload& workload : evaluator.workloads()) {
            const auto* figures = entry_in(one.figures, workload.workload.name);
            if (figures == nullptr) continue;
            SpeedRow row{target, started.cost->settings(), TrafficMeans::of(workload.traffic),
                         at_load_level(workload.workload, one.configuration).arrival, *figures};
            if (!started.serving.unknown.empty()) row.weight = 0.5;
            // The times of a load that was looked for are those at that load, which nobody
            // predicts.
            if (row.arrival.searched())
                std::erase_if(row.measured, [](const auto& figure) {
                    return figure.first.ends_with("_seconds");
                });
            rows.emplace_back([row = std::move(row)](const SpeedFactors& factors) {
                return row.errors(factors);
            });
        }
    }
    return fitted_factors(rows);
}

}  // namespace servetune
