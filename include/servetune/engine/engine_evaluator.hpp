// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine/composition.hpp"
#include "servetune/engine/deployment.hpp"
#include "servetune/evaluate/evaluator.hpp"
#include "servetune/load/load_test.hpp"
#include "servetune/perf/hardware_spec.hpp"
#include "servetune/perf/model_spec.hpp"
#include "servetune/traffic/workload.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Measures configurations for real: starts the engine with the configuration's command, waits until it serves, warms it up, sends every workload,
/// audits what comes back, tears everything down.
///
/// One start serves all workloads of a trial; before each the engine's prefix cache is emptied where it can be, and every run has a salt of its own, so that
/// no prompt was ever seen. Runs of the same configuration number (EvaluationContext::seed) send the same requests whatever the
/// configuration. A result never comes from a server that died or was replaced meanwhile. What is the machine's fault and not the configuration's
/// (FailureKind::infrastructure) is tried again with a back-off and never told of the configuration: where it stays, `evaluate` throws IoError and
/// the trial stays open.
///
/// A measurement has beside its figures `trial_start_seconds`, `trial_warm_up_seconds`, `trial_measure_seconds` and `trial_stop_seconds`: where
/// the trial's time went.
class EngineEvaluator : public Evaluator {
public:
    struct Options {
        std::filesystem::path folder{};          ///< of the study; a trial's log is `trials/ID/engine.log` below it
        DeployOptions deploy{};                  ///< its folder is the trial's own
        LoadOptions load{};                      ///< time-outs of requests; `ignore_eos` comes from the workload
        ServiceLimits limits{};                  ///< for goodput
        double trial_within_seconds = 7200;      ///< start to stop; a longer trial is Failure{hung}
        std::size_t warm_up_requests = 16;       ///< before the first workload, of its kind
        std::size_t infrastructure_retries = 3;  ///< after 1 s, 4 s, 16 s, ...
        std::optional<HardwareSpec> hardware{};  ///< for the audit's physics
        std::vector<ModelSpec> models{};
        std::function<void(const std::string&)> say{};  ///< one line for the user's log: `trial 7: ready after 61 s`
    };

    /// `workloads`: those of the objective with their weights, and those that are only reported. The composition must outlive this.
    EngineEvaluator(const Composition& composition, std::string model, std::vector<Workload> workloads,
                    std::vector<Workload> report_workloads, Options options);

    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override;

private:
    class OneTrial;
    const Composition& composition_;
    std::string model_;
    std::vector<Workload> workloads_;
    std::vector<Workload> report_workloads_;
    Options options_;
};

}  // namespace servetune
