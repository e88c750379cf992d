// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/objective.hpp"
#include "servetune/simulate_evaluator.hpp"

#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// How much a metric gains from more of one resource, by the cost model.
struct ResourceGain {
    std::string resource;  ///< `memory bandwidth`
    /// d ln(metric) / d ln(resource), more is better: 0.6 is 0.6 % for 1 % more.
    double elasticity = 0;
};

/// What the cost model says that a configuration is bound by: the largest elasticity first. Each is
/// a difference of two quick estimates (perf/quick_estimate.hpp) with a tenth more of the resource:
/// memory bandwidth, compute, memory for the cache, links between devices, the host's work. All 0:
/// what arrives is all that is served. Empty: the configuration does not start, has roles apart, or
/// the model does not estimate this metric. `weights`: of the workloads.
std::vector<ResourceGain> resource_gains(
    const SimulateEvaluator& evaluator, const Configuration& configuration, const Goal& goal,
    const std::vector<std::pair<std::string, double>>& weights);

}  // namespace servetune
