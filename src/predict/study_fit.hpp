// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fit.hpp"
#include "perf/quick_estimate.hpp"
#include "servetune/decision.hpp"
#include "servetune/simulate_evaluator.hpp"
#include "servetune/trial.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace servetune {

/// What a study measured of one configuration, as far as the cost model can be held against it.
struct MeasuredSpeed {
    Configuration configuration{};
    /// Workload -> metric -> mean over its measurements: throughput, mean (or median) TTFT and
    /// TPOT.
    std::map<std::string, std::map<std::string, double>> figures{};

    friend bool operator==(const MeasuredSpeed&, const MeasuredSpeed&) = default;
};

/// The measured configurations of a history, in the order of their first trial: of the search,
/// believed by the audit, not ended early. `workloads`: the names that count.
std::vector<MeasuredSpeed> measured_speeds(std::span<const Trial> history, const Decision& decision,
                                           const std::vector<std::string>& workloads);

/// One workload of one measured configuration, ready to be predicted under any factors.
struct SpeedRow {
    ServingTarget target;
    ServingSettings settings;
    TrafficMeans means;
    Arrival arrival;
    std::map<std::string, double> measured;  ///< metric -> value, as in MeasuredSpeed
    double weight = 1;                       ///< of its errors

    /// ln(predicted / measured) by `quick_estimate`, in standard deviations of a fitted model's
    /// error.
    [[nodiscard]] std::vector<double> errors(const SpeedFactors& factors) const;
};

/// The most likely factors of the machine by what was measured (`fitted_factors`), with
/// `quick_estimate` as the prediction. A configuration with flags that the cost model does not know
/// counts a quarter: its error is twice as large.
SpeedFactors factors_of(const SimulateEvaluator& evaluator,
                        const std::vector<MeasuredSpeed>& measured);

}  // namespace servetune
