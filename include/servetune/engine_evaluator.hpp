// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/deployment.hpp"
#include "servetune/detail/deploy/measure_options.hpp"
#include "servetune/detail/deploy/quality_gate.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/evaluator.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

struct PlacedServer;
class TrialFolders;
class WeightCache;

/// Measures configurations for real: starts the engine with the configuration's command, waits
/// until it serves, warms it up, sends every workload, audits what comes back, tears everything
/// down.
///
/// One start serves all workloads of a trial; before each the engine's prefix cache is emptied
/// where it can be, and every run has a salt of its own, so that no prompt was ever seen. Runs of
/// the same configuration number (EvaluationContext::seed) send the same requests whatever the
/// configuration. A result never comes from a server that died or was replaced meanwhile; one that
/// the machine disturbed is measured once more, then flagged. What is the machine's fault and not
/// the configuration's (FailureKind::infrastructure) is tried again with a back-off and never told
/// of the configuration: where it stays, `evaluate` throws IoError and the trial stays open.
///
/// An engine gets exactly the devices that its layout takes, in the order of `gpus`, of
/// CUDA_VISIBLE_DEVICES, or of nvidia-smi (`groups_of_devices`). A trial that takes more than there
/// are throws IoError.
///
/// With `fill_devices` as many copies of the engine are started as the devices hold, each on
/// devices of its own and on a port of its own, and requests go to the one with the fewest in
/// flight: layouts of different size then use the same machine. All copies are one configuration;
/// `replicas` in a measurement is their number.
///
/// Of several groups (`Composition::groups`) each server has devices of its own, and the router
/// gets the requests; the weight cache has no part in it.
///
/// Where the space has levels of load (`load_level`), an engine that a trial leaves in good order
/// goes on serving until a configuration needs other flags, the same configuration is to be
/// measured again (a replicate is a new start), or this object ends.
///
/// With `weight_cache` the first measurement of a configuration takes its weights from a daemon
/// that keeps them in the devices' memory from trial to trial (WeightCacheDaemon), where its engine
/// can. Cold starts decide all the same: the default's, every repeat's, those of workloads that are
/// only reported and of configurations that the quality gate asks. What fails with weights of the
/// cache is measured from a cold start before it is told. A measurement has `weight_cache`, 1 where
/// it took them, and `trial_weight_cache_seconds`, for which the trial waited for the daemon.
///
/// With `reuse_cache_size` a first measurement's engine is told how large a cache an earlier start
/// has found room for, where all that may change it is equal (Engine::cache_size). Cold starts
/// decide as above, and what fails is measured from one. Such a measurement has
/// `cache_size_reused`, 1.
///
/// A measurement has beside its figures `ready_seconds` of its server's start, and
/// `trial_start_seconds`, `trial_warm_up_seconds`,
/// `trial_measure_seconds` and `trial_stop_seconds`: where the trial's time went; 0 for a start
/// that an earlier trial paid for.
class EngineEvaluator : public Evaluator {
public:
    /// Where and how the engine of each trial is started and measured.
    struct Options {
        std::filesystem::path
            folder{};            ///< of the study; a trial's log is `trials/ID/engine.log` below it
        DeployOptions deploy{};  ///< its folder is the trial's own
        MeasureOptions measure{};
        std::optional<QualityOptions>
            quality{};  ///< asked before the load test of each configuration; nothing: not asked
        /// Asked in trials of a stress, to tell what answers change; nothing: not asked.
        std::optional<QualityOptions> answers{};
        std::optional<double> usd_per_device_hour{};  ///< for what a million tokens costs
        bool fill_devices =
            false;  ///< as many copies of the engine as the devices hold, loaded as one server
        std::optional<std::int64_t>
            most_devices{};             ///< for all copies together; nothing: all that there are
        bool weight_cache = false;      ///< on this machine only, and without containers
        bool reuse_cache_size = false;  ///< on this machine only
        std::size_t all_logs_bytes = 1UL
                                     << 30UL;  ///< of all trials together; over it the oldest go
        std::shared_ptr<TrialFolders>
            trial_folders{};  ///< of the study, where several evaluators measure it at once

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const;
    };

    /// The composition must outlive this. Throws UsageError where the options cannot be.
    EngineEvaluator(const Composition& composition, std::string model, StudyWorkloads workloads,
                    Options options);
    ~EngineEvaluator() override;

    Outcome evaluate(const Configuration& configuration, const EvaluationContext& context) override;

    /// The servers that a configuration starts, each with devices of its own. Throws as
    /// `evaluate` where there are too few.
    [[nodiscard]] std::vector<PlacedServer> servers_for(const Configuration& configuration);

private:
    struct Running;
    class OneTrial;
    [[nodiscard]] Outcome evaluated(const Configuration& configuration,
                                    const EvaluationContext& context, std::size_t attempt);
    [[nodiscard]] std::string doubt_of(const Outcome& outcome) const;
    [[nodiscard]] std::string devices_allowed();
    [[nodiscard]] std::vector<std::vector<std::string>> shares_for(
        const std::vector<ServerGroup>& groups, bool by_flags);
    const Composition& composition_;
    std::string model_;
    StudyWorkloads workloads_;
    Options options_;
    bool has_load_levels_;
    std::optional<FoundDevices> found_{};  ///< once the first trial asks
    std::optional<QualityGate> quality_{}, answers_{};
    Configuration default_;                      ///< the space's default
    std::unique_ptr<WeightCache> weight_cache_;  ///< null: not asked for
    std::string why_no_cache_{};                 ///< as it was said last
    bool tells_cache_size_;
    std::map<std::string, std::int64_t> cache_bytes_{};  ///< of earlier starts, by what decides it
    std::unique_ptr<Running> running_;
};

}  // namespace servetune
