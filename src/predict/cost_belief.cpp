// SPDX-License-Identifier: Apache-2.0
#include "cost_belief.hpp"

#include "engine/load_level.hpp"
#include "load/capacity.hpp"
#include "perf/cost_check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_map>

namespace servetune {

namespace {

constexpr double surely = 3;  ///< standard deviations: as far as a margin goes

/// The largest load that keeps the limits goes with what the engine does at most; a prior mean's
/// level is learned.
std::string believed(std::string metric) {
    return metric == sustained_requests_per_second || metric == "goodput_requests_per_second"
               ? "requests_per_second"
               : std::move(metric);
}

}  // namespace

double memory_margin(const MemoryPlan& plan, double least_tokens) {
    const double tenth = 0.1 * plan.device_bytes;
    const double cache = plan.missing_bytes > 0
                             ? -plan.missing_bytes
                             : plan.cache_bytes - least_tokens * plan.cache_bytes_per_token;
    return std::clamp(std::min(cache, plan.free_bytes) / tenth, -surely, surely);
}

/// What commands mean, read once: reading takes ten times as long as estimating, and is the same
/// under all factors.
class CostBelief::Plans {
public:
    Plans(std::unique_ptr<SimulateEvaluator> evaluator, const Objective& objective,
          const std::vector<std::pair<std::string, double>>& weights)
        : evaluator_(std::move(evaluator)),
          metric_(believed(objective.leading().metric)),
          limits_(objective.limits) {
        for (const auto& [name, weight] : weights)
            for (const SimulatedWorkload& workload : evaluator_->workloads())
                if (workload.workload.name == name)
                    loads_.push_back(
                        {workload.workload, TrafficMeans::of(workload.traffic), weight});
    }

    [[nodiscard]] const SimulateEvaluator& evaluator() const { return *evaluator_; }
    [[nodiscard]] std::vector<std::string> workloads() const {
        std::vector<std::string> names;
        for (const Load& load : loads_) names.push_back(load.workload.name);
        return names;
    }

    [[nodiscard]] PriorBelief belief(const Configuration& configuration,
                                     const SpeedFactors& factors) {
        const std::shared_ptr<const Plan> plan = plan_of(configuration);
        PriorBelief result{std::nullopt, plan->margin};
        if (!plan->serves) return result;
        ServingTarget target = *plan->target;
        target.traits = scaled(std::move(target.traits), factors);
        const CostModel cost(target, plan->settings);
        double logs = 0;
        double weights = 0;
        result.log_error = plan->error;
        result.limits.resize(limits_.size());
        for (const Load& load : loads_) {
            const Arrival arrival = at_load_level(load.workload, configuration).arrival;
            const QuickEstimate quick = quick_estimate(cost, load.means, arrival);
            for (std::size_t j = 0; j < limits_.size() && !arrival.searched(); ++j)
                if (const auto value = quick.metric(limits_[j].metric); value.value_or(0) > 0) {
                    const double margin = margin_of(limits_[j], *value);
                    result.limits[j] = std::min(result.limits[j].value_or(margin), margin);
                }
            logs += load.weight * std::log(quick.metric(metric_).value_or(0));
            weights += load.weight;
        }
        if (weights > 0 && std::isfinite(logs)) result.log_value = logs / weights;
        return result;
    }

private:
    struct Load {
        Workload workload;
        TrafficMeans means;
        double weight = 1;
    };
    struct Plan {
        std::optional<double> margin{};
        bool serves = false;
        std::optional<double> error{};
        std::shared_ptr<const ServingTarget> target{};  ///< without the lines of its logs
        ServingSettings settings{};
    };

    [[nodiscard]] std::shared_ptr<const Plan> plan_of(const Configuration& configuration) {
        const std::uint64_t key = configuration.fingerprint().bits;
        {
            const std::lock_guard lock(guard_);
            if (const auto* known = entry_in(plans_, key)) return *known;
        }
        auto plan = std::make_shared<const Plan>(read(configuration));
        constexpr std::size_t most = 100'000;  // some 400 bytes each
        const std::lock_guard lock(guard_);
        if (plans_.size() < most) plans_.emplace(key, plan);
        return plan;
    }

    [[nodiscard]] Plan read(const Configuration& configuration) {
        const SimulateEvaluator::Started started = evaluator_->started(configuration);
        const bool refused = !started.start.serves;
        if (started.failure && !refused && started.failure->kind == FailureKind::unsupported)
            return {};  // a figure that is not known
        if (!started.cost) return {-surely};
        const CostModel& cost = *started.cost;
        double longest = 0;  // a cache without room for one request serves none
        for (const Load& load : loads_)
            longest = std::max(longest, load.means.prompt_tokens + load.means.output_tokens);
        if (cost.target().traits.checks_context)
            longest = std::max(longest, double(cost.max_context_tokens()));
        double margin = memory_margin(cost.memory(), longest);
        if (!started.serving.unknown.empty()) margin /= 2;
        if (started.failure && margin >= 0) margin = -surely;  // it is not memory that it fails for
        if (started.failure || cost.memory().cache_tokens == 0) return {margin};
        const ServingTarget& target = cost.target();
        auto error = error_within(check_of(target.traits, target.hardware, target.model));
        if (error && !started.serving.unknown.empty()) *error *= 2;
        return {margin, true, error, shared(cost.target()), cost.settings()};
    }

    /// Most configurations have the same target.
    [[nodiscard]] std::shared_ptr<const ServingTarget> shared(const ServingTarget& target) {
        const std::lock_guard lock(guard_);
        std::shared_ptr<const ServingTarget>& kept =
            targets_[target.traits.engine + " " + target.model.name];
        if (kept && kept->model.weights.size() == target.model.weights.size())
            return kept;  // 32-bit weights are one entry more
        ServingTarget lean = target;
        lean.traits.log.clear();
        return kept = std::make_shared<const ServingTarget>(std::move(lean));
    }

    std::unique_ptr<SimulateEvaluator> evaluator_;
    std::string metric_;
    std::vector<Limit> limits_;
    std::vector<Load> loads_{};
    std::mutex guard_{};  ///< of what follows
    std::unordered_map<std::uint64_t, std::shared_ptr<const Plan>> plans_{};
    std::map<std::string, std::shared_ptr<const ServingTarget>> targets_{};
};

CostBelief::CostBelief(std::unique_ptr<SimulateEvaluator> evaluator, const Objective& objective,
                       const std::vector<std::pair<std::string, double>>& weights)
    : plans_(std::make_shared<Plans>(std::move(evaluator), objective, weights)) {}

CostBelief::CostBelief(std::shared_ptr<Plans> plans, const SpeedFactors& factors,
                       std::size_t configurations)
    : plans_(std::move(plans)), factors_(factors), fitted_configurations_(configurations) {}

CostBelief::~CostBelief() = default;

std::string CostBelief::name() const {
    if (fitted_configurations_ == 0) return "the cost model";
    return "the cost model fitted to " + std::to_string(fitted_configurations_) +
           (fitted_configurations_ == 1 ? " configuration (" : " configurations (") +
           factors_.text() + ")";
}

PriorBelief CostBelief::belief(const Configuration& configuration) const {
    return plans_->belief(configuration, factors_);
}

std::shared_ptr<const PriorMean> CostBelief::fitted_to(std::span<const Trial> history,
                                                       const Decision& decision) const {
    if (fitted_configurations_ > 0) return nullptr;
    std::vector<MeasuredSpeed> measured = measured_speeds(history, decision, plans_->workloads());
    measured.resize(std::bit_floor(measured.size()));
    if (measured.empty()) return nullptr;
    const std::lock_guard lock(guard_);
    if (!fitted_ || measured != measured_) {
        const SpeedFactors factors = factors_of(plans_->evaluator(), measured);
        fitted_.reset(new CostBelief(plans_, factors, measured.size()));
        measured_ = std::move(measured);
    }
    return fitted_;
}

}  // namespace servetune
