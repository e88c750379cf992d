// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "perf/quick_estimate.hpp"
#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/simulate_evaluator.hpp"
#include "study_fit.hpp"

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// What the cost model expects of configurations, as knowledge for an optimizer that does not know
/// what it tunes.
///
/// The value: the objective's metric by `quick_estimate`, of several workloads the weighted
/// geometric mean; nothing for a metric that it does not estimate. The margin: how far the memory
/// plan is from failing, in tenths of the device's memory (a plan's error is of that order), -3 to
/// 3; -3 where the engine would refuse or is known not to start for another reason; half of it
/// where the command has flags that the cost model does not know. Nothing is simulated.
///
/// `fitted_to` corrects it by three factors of the machine (study_fit.hpp), anew after 1, 2, 4, 8,
/// ... measured configurations. Thread-safe.
class CostBelief : public PriorMean {
public:
    /// `evaluator` reads the commands and starts the engine on paper. `weights`: workload ->
    /// weight, the objective's.
    CostBelief(std::unique_ptr<SimulateEvaluator> evaluator, const Objective& objective,
               const std::vector<std::pair<std::string, double>>& weights);
    ~CostBelief() override;

    [[nodiscard]] std::string name() const override;
    [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override;
    [[nodiscard]] std::shared_ptr<const PriorMean> fitted_to(
        std::span<const Trial> history, const Decision& decision) const override;

private:
    class Plans;
    CostBelief(std::shared_ptr<Plans> plans, const SpeedFactors& factors,
               std::size_t configurations);

    std::shared_ptr<Plans>
        plans_;  ///< of the shipped belief and of all that are fitted to something
    SpeedFactors factors_{};
    std::size_t fitted_configurations_ = 0;
    mutable std::mutex guard_{};  ///< of what follows: the last answer of `fitted_to`
    mutable std::vector<MeasuredSpeed> measured_{};
    mutable std::shared_ptr<const CostBelief> fitted_{};
};

/// Of a memory plan: the smaller of what is left for the cache beyond `least_tokens` and what is
/// left beside everything, in tenths of the device's memory, within +-3.
double memory_margin(const MemoryPlan& plan, double least_tokens);

}  // namespace servetune
