// SPDX-License-Identifier: Apache-2.0
#include "study_predictions.hpp"

#include "predict/study_fit.hpp"
#include "servetune/outcome.hpp"

#include <algorithm>

namespace servetune {
namespace {

/// The load tests of a configuration, one after the other; nothing: one of them would not end well.
std::optional<double> load_seconds(const SimulateEvaluator& evaluator,
                                   const SimulateEvaluator::Started& started,
                                   const StudyFile& file) {
    if (started.failure) return std::nullopt;
    double sum = 0;
    for (const Workload& workload : file.workloads) {
        const auto same = [&](const SimulatedWorkload& one) {
            return one.workload.name == workload.name;
        };
        const auto found =
            std::find_if(evaluator.workloads().begin(), evaluator.workloads().end(), same);
        if (found == evaluator.workloads().end()) return std::nullopt;
        const Outcome outcome = evaluator.measured(started, *found, 0);
        const auto* measurement = std::get_if<Measurement>(&outcome);
        if (measurement == nullptr) return std::nullopt;
        const auto duration = measurement->metrics.find("duration_seconds");
        if (duration == measurement->metrics.end()) return std::nullopt;
        sum += duration->second.value;
    }
    return sum;
}

/// The same as a trial measured it.
std::optional<double> measured_load_seconds(const Measurement& measurement, const StudyFile& file) {
    double sum = 0;
    for (const Workload& workload : file.workloads) {
        const auto found = measurement.metrics.find(
            MetricKey{"duration_seconds", file.workloads.size() > 1 ? workload.name : ""}.text());
        if (found == measurement.metrics.end()) return std::nullopt;
        sum += found->second.value;
    }
    return sum;
}

double middle(std::vector<double> values) {
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    return *half;
}

}  // namespace

std::optional<double> expected_trial_seconds(const StudySetup& setup,
                                             const Configuration& configuration,
                                             std::span<const Trial> history) {
    const StudyFile& file = setup.file;
    const bool deploys = std::holds_alternative<DeployChoice>(file.measuring);
    if (!deploys && !std::holds_alternative<AttachChoice>(file.measuring) &&
        !std::holds_alternative<SimulateChoice>(file.measuring))
        return std::nullopt;
    std::unique_ptr<SimulateEvaluator> evaluator = simulated(file);
    std::vector<std::string> names;
    for (const Workload& workload : file.workloads) names.push_back(workload.name);
    if (const auto measured = measured_speeds(history, setup.problem->decision, names);
        !measured.empty())
        evaluator = evaluator->with(factors_of(*evaluator, measured));
    const SimulateEvaluator::Started started = evaluator->started(configuration);
    const auto load = load_seconds(*evaluator, started, file);
    if (!load) return std::nullopt;
    constexpr std::size_t enough = 5;  // each is simulated; the median of more hardly differs
    std::vector<double> ratios;        // measured / predicted
    std::vector<double> around;        // start, warm-up, stop
    for (const Trial& trial : history) {
        const Measurement* measurement = trial.measurement();
        if (!trial.of_search() || measurement == nullptr || measurement->validity.ended_early() ||
            ratios.size() >= enough)
            continue;
        const auto took = measured_load_seconds(*measurement, file);
        const auto predicted =
            load_seconds(*evaluator, evaluator->started(trial.configuration), file);
        if (!took || !predicted || !(*predicted > 0) || !(trial.cost_seconds() > 0)) continue;
        ratios.push_back(*took / *predicted);
        around.push_back(std::max(0.0, trial.cost_seconds() - *took));
    }
    if (ratios.empty()) return *load + (deploys ? started.start.seconds : 0);
    return *load * middle(std::move(ratios)) + middle(std::move(around));
}

}  // namespace servetune
