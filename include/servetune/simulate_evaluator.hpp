// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/detail/perf/simulator.hpp"
#include "servetune/detail/perf/speed_factors.hpp"
#include "servetune/detail/perf/start_failure.hpp"
#include "servetune/detail/predict/serving.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/objective.hpp"
#include "servetune/workload.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// A workload made ready to be simulated under many configurations.
struct SimulatedWorkload {
    Workload workload;
    SimulatedTraffic traffic;
    /// its load is one that a search chose: that a server keeps up with it is no finding
    bool chosen = false;
};

/// Answers from the cost model and the simulator instead of a GPU: every number is a prediction,
/// and as good as the traits it rests on. It does what a deployment
/// would do: reads the configuration's own command, starts the engine on paper, reads the log of
/// one that dies with the engine file's patterns, sends the workloads, summarises and audits what
/// comes back.
///
///     SimulateEvaluator evaluator(*study.composition, study.model, std::move(readers),
///                                 std::move(workloads));
///     const Outcome outcome = evaluator.evaluate(configuration, {});
class SimulateEvaluator : public Evaluator {
public:
    /// The weights of the workloads, and what the simulation adds to them.
    struct Options {
        std::vector<std::pair<std::string, double>>
            weights{};      ///< workloads of the objective; empty: all, equally
        StepNoise noise{};  ///< none: the same configuration gives the same numbers every time
        std::optional<double> usd_per_device_hour{};  ///< for what a million tokens costs
        std::vector<Limit> limits{};  ///< for goodput, and for workloads whose load is looked for

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const;
    };

    /// One reader for each engine of the composition, which must outlive this. Throws UsageError
    /// where one is missing.
    SimulateEvaluator(const Composition& composition, std::string model,
                      std::vector<ServingReader> readers, std::vector<SimulatedWorkload> workloads,
                      Options options);

    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override;
    [[nodiscard]] bool replicates_inform() const override;
    /// As `evaluate`. Thread-safe.
    [[nodiscard]] Outcome predicted(const Configuration& configuration,
                                    const EvaluationContext& context = {}) const;

    /// The same on a machine whose speed differs from what the traits say by these factors.
    [[nodiscard]] std::unique_ptr<SimulateEvaluator> with(const SpeedFactors& factors) const;

    /// A configuration's engine, started on paper. Flags of the study that nobody here knows are
    /// left out (Serving::unknown). Thread-safe.
    struct Started {
        Serving serving{};
        StartResult start{};
        std::optional<CostModel> cost{};   ///< nothing where the engine refuses its flags
        std::optional<Failure> failure{};  ///< what a trial of it is; nothing where it serves
    };
    [[nodiscard]] Started started(const Configuration& configuration) const;
    /// One workload on an engine that serves: under its own arrival, or at the largest load that
    /// keeps the limits where that is to be found. Thread-safe.
    [[nodiscard]] Outcome measured(const Started& started, const SimulatedWorkload& workload,
                                   std::uint64_t seed) const;
    [[nodiscard]] const std::vector<SimulatedWorkload>& workloads() const { return workloads_; }

private:
    [[nodiscard]] Outcome predicted_rates(const Configuration& configuration,
                                          const EvaluationContext& context) const;
    [[nodiscard]] Outcome loaded(const Started& started, const SimulatedWorkload& workload,
                                 std::uint64_t seed) const;
    [[nodiscard]] Started started(const ServingReader& reader, const Command& command) const;
    [[nodiscard]] const ServingReader& reader_of(const Engine& engine) const;
    [[nodiscard]] Failure failure_of(const Engine& engine, const StartResult& start) const;
    [[nodiscard]] std::optional<Failure> died(const Started& started,
                                              const SimulatedRun& run) const;

    const Composition& composition_;
    std::string model_;
    std::shared_ptr<const std::vector<ServingReader>> readers_;
    std::vector<SimulatedWorkload> workloads_;
    Options options_;
    SpeedFactors factors_{};
};

}  // namespace servetune
