// SPDX-License-Identifier: Apache-2.0
#include "bottleneck.hpp"

#include "engine/load_level.hpp"
#include "load/capacity.hpp"
#include "perf/quick_estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace servetune {
namespace {

/// A tenth more: small enough for a slope, and above the steps of whole sequences and blocks.
constexpr double more_of_resource = 1.1;

using MoreOf = void (*)(ServingTarget&);

constexpr std::array<std::pair<const char*, MoreOf>, 5> cost_resources{
    {{"memory bandwidth",
      [](ServingTarget& target) {
          target.hardware.memory_bandwidth_bytes_per_second *= more_of_resource;
      }},
     {"compute",
      [](ServingTarget& target) {
          for (auto& [type, flops] : target.hardware.flops_per_second) flops *= more_of_resource;
      }},
     {"memory for the cache",
      [](ServingTarget& target) { target.hardware.memory_bytes *= more_of_resource; }},
     {"links between devices",
      [](ServingTarget& target) {
          for (auto* link :
               {&target.hardware.link_bytes_per_second, &target.hardware.network_bytes_per_second})
              if (*link) **link *= more_of_resource;
          target.traits.all_reduce_seconds /= more_of_resource;
      }},
     {"the host's work", [](ServingTarget& target) {
          for (double* seconds :
               {&target.traits.step_overhead_seconds, &target.traits.sequence_overhead_seconds,
                &target.traits.eager_layer_seconds, &target.traits.request_overhead_seconds,
                &target.traits.chunk_overhead_seconds})
              *seconds /= more_of_resource;
      }}}};

}  // namespace

std::vector<ResourceGain> resource_gains(
    const SimulateEvaluator& evaluator, const Configuration& configuration, const Goal& goal,
    const std::vector<std::pair<std::string, double>>& weights) {
    const SimulateEvaluator::Started started = evaluator.started(configuration);
    if (started.failure || !started.cost || started.apart ||
        started.cost->memory().cache_tokens == 0)
        return {};
    const bool capacity = goal.metric == sustained_requests_per_second ||
                          goal.metric == "goodput_requests_per_second";
    const std::string metric = capacity ? "requests_per_second" : goal.metric;
    const auto log_of = [&](const ServingTarget& target) -> std::optional<double> {
        const CostModel cost(target, started.cost->settings());
        double logs = 0;
        double sum = 0;
        for (const SimulatedWorkload& workload : evaluator.workloads())
            for (const auto& [name, weight] : weights) {
                if (name != workload.workload.name) continue;
                const Arrival arrival = at_load_level(workload.workload, configuration).arrival;
                const auto value = quick_estimate(cost, TrafficMeans::of(workload.traffic), arrival)
                                       .metric(metric);
                if (!value || !(*value > 0) || !std::isfinite(*value)) return std::nullopt;
                logs += weight * std::log(*value);
                sum += weight;
            }
        return sum > 0 ? std::optional(logs / sum) : std::nullopt;
    };
    const auto usual = log_of(started.cost->target());
    if (!usual) return {};
    std::vector<ResourceGain> result;
    for (const auto& [resource, more] : cost_resources) {
        ServingTarget target = started.cost->target();
        more(target);
        const auto faster = log_of(target);
        if (!faster) return {};
        const double slope = (*faster - *usual) / std::log(more_of_resource);
        result.push_back({resource, goal.direction == Direction::maximize ? slope : -slope});
    }
    std::stable_sort(
        result.begin(), result.end(),
        [](const ResourceGain& a, const ResourceGain& b) { return a.elasticity > b.elasticity; });
    return result;
}

}  // namespace servetune
