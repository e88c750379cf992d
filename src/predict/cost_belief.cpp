// SPDX-License-Identifier: Apache-2.0
#include "servetune/predict/cost_belief.hpp"

#include "servetune/engine/load_level.hpp"
#include "servetune/load/capacity.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {

namespace {

constexpr double surely = 3;  ///< standard deviations: as far as a margin goes

/// The largest load that keeps the limits goes with what the engine does at most; a prior mean's level is learned.
std::string believed(std::string metric) {
    return metric == sustained_requests_per_second || metric == "goodput_requests_per_second" ? "requests_per_second" : std::move(metric);
}

}  // namespace

double memory_margin(const MemoryPlan& plan, double least_tokens) {
    const double tenth = 0.1 * plan.device_bytes;
    const double cache = plan.missing_bytes > 0 ? -plan.missing_bytes : plan.cache_bytes - least_tokens * plan.cache_bytes_per_token;
    return std::clamp(std::min(cache, plan.free_bytes) / tenth, -surely, surely);
}

CostBelief::CostBelief(std::unique_ptr<SimulateEvaluator> evaluator, std::string metric,
                       const std::vector<std::pair<std::string, double>>& weights)
    : evaluator_(std::move(evaluator)), metric_(believed(std::move(metric))) {
    for (const auto& [name, weight] : weights)
        for (const SimulatedWorkload& workload : evaluator_->workloads())
            if (workload.workload.name == name) loads_.push_back({workload.workload, TrafficMeans::of(workload.traffic), weight});
}

std::string CostBelief::name() const { return "the cost model" + fitted_text_; }

std::shared_ptr<const PriorMean> CostBelief::fitted_to(std::span<const Trial> history, const Decision& decision) const {
    if (!fitted_text_.empty()) return nullptr;
    std::vector<std::string> names;
    std::vector<std::pair<std::string, double>> weights;
    for (const Load& load : loads_) {
        names.push_back(load.workload.name);
        weights.emplace_back(load.workload.name, load.weight);
    }
    std::vector<MeasuredSpeed> measured = measured_speeds(history, decision, names);
    measured.resize(fitted_after(measured.size()));
    if (measured.empty()) return nullptr;
    const std::lock_guard lock(guard_);
    if (fitted_ && measured == measured_) return fitted_;
    const SpeedFactors factors = factors_of(*evaluator_, measured);
    auto result = std::make_shared<CostBelief>(evaluator_->with(factors), metric_, weights);
    result->fitted_text_ = " fitted to " + std::to_string(measured.size()) +
                           (measured.size() == 1 ? " configuration (" : " configurations (") + factors.text() + ")";
    measured_ = std::move(measured);
    fitted_ = std::move(result);
    return fitted_;
}

PriorBelief CostBelief::belief(const Configuration& configuration) const {
    const SimulateEvaluator::Started started = evaluator_->started(configuration);
    const bool refused = started.start.end != StartResult::End::serves;
    if (started.failure && !refused && started.failure->kind == FailureKind::unsupported) return {};  // a figure that is not known
    if (!started.cost) return {std::nullopt, -surely};
    const CostModel& cost = *started.cost;
    double longest = 0;  // a cache without room for one request serves none
    for (const Load& load : loads_) longest = std::max(longest, load.means.prompt_tokens + load.means.output_tokens);
    if (cost.target().traits.checks_context) longest = std::max(longest, static_cast<double>(cost.max_context_tokens()));
    PriorBelief result{std::nullopt, memory_margin(cost.memory(), longest)};
    if (!started.serving.unknown.empty()) *result.margin /= 2;
    if (started.failure && *result.margin >= 0) result.margin = -surely;  // it is not memory that it fails for
    if (started.failure || cost.memory().cache_tokens == 0) return result;
    double logs = 0;
    double weights = 0;
    for (const Load& load : loads_) {
        const Arrival arrival = at_load_level(load.workload, configuration).arrival;
        const auto value = quick_estimate(cost, load.means, arrival).metric(metric_);
        if (!value || !(*value > 0) || !std::isfinite(*value)) return result;
        logs += load.weight * std::log(*value);
        weights += load.weight;
    }
    if (weights > 0) result.log_value = logs / weights;
    return result;
}

}  // namespace servetune
