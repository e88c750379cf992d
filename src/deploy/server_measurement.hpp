// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "early_end.hpp"
#include "servetune/configuration.hpp"
#include "servetune/detail/deploy/measure_options.hpp"
#include "servetune/detail/deploy/server.hpp"
#include "servetune/detail/load/calibration.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/detail/load/race.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/load_test.hpp"
#include "servetune/objective.hpp"
#include "servetune/trial.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace servetune {

/// A load test of a trial that was not ended early, for whoever keeps its requests
/// (MeasureOptions::keep).
struct MeasuredLoad {
    std::uint64_t trial = 0;
    std::uint64_t seed = 0;  ///< the trial's
    /// within the trial, from 0; 0 again where all is measured once more, which replaces what was
    /// before
    std::size_t number = 0;
    const Configuration& configuration;
    const std::string& model;  ///< what the server was told to serve
    const std::string&
        called;  ///< the workload's name; with `, load 2` behind it where its load is looked for
    const LoadTest& test;
    const LoadTestResult& result;
};

/// What one trial does with a server that serves: a warm-up and a load test per workload with the
/// prefix cache emptied before it and a salt of its own, the audit, and a watch meanwhile over the
/// server and the machine. What the machine disturbed, or what was not steady, is measured once
/// more, then flagged.
class ServerMeasurement {
public:
    /// `attempt`: of this trial, so that no prompt is sent twice. All must outlive it.
    ServerMeasurement(const MeasureOptions& options, const StudyWorkloads& workloads,
                      const Configuration& configuration, const EvaluationContext& context,
                      std::size_t attempt);

    /// `model`: what the server was told to serve, and `devices`: on how many accelerators, for the
    /// physics. `known`: how it counts, filled where it is empty. Throws IoError where the client's
    /// machine is at fault.
    Outcome of(Server& server, const std::string& model, double devices,
               std::optional<Calibration>& known);

    /// `trial_warm_up_seconds` and `trial_measure_seconds`, as far as it got; `trial_saved_seconds`
    /// of load tests that were ended early or left out.
    [[nodiscard]] const Metrics& costs() const { return costs_; }
    /// So long the engine stood in a queue, or waited for its weight cache: no time of the trial.
    void waited(double seconds) {
        deadline_ +=
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    /// One line with the trial's number.
    void say(const std::string& what) const;
    /// What the trial does now, for a status line.
    void phase(const std::string& what) const;

private:
    using Clock = std::chrono::steady_clock;
    class Watch;
    struct Measured {
        std::vector<WorkloadMetrics> parts{};
        Validity validity{};
        std::vector<Finding> disturbed{};  ///< by the machine
    };

    void leave_out_rest(Measured& measured, const std::optional<Hopeless>& reason);
    [[nodiscard]] bool stresses() const { return context_.workload == stress_workload; }
    [[nodiscard]] std::uint64_t salt(const std::string& what) const;
    [[nodiscard]] double stalled_after() const;
    [[nodiscard]] LoadOptions watched(Watch& watch, const std::string& what) const;
    [[nodiscard]] std::optional<Failure> first_answers(Server& server, Watch& watch,
                                                       std::optional<Calibration>& known);
    void warm_up(Watch& watch, const std::string& called, const LoadTest& measured);
    [[nodiscard]] std::string why_again(const std::variant<Measured, Failure>& result) const;
    [[nodiscard]] Measurement as_given_up(const std::string& workload, const RateToReach& wanted,
                                          const EarlyStop& found) const;
    Outcome loaded(Server& server, Watch& watch, const std::string& model,
                   const Calibration& calibration, const Workload& workload,
                   const std::string& called, const std::optional<RateToReach>& to_reach = {});
    Outcome at_capacity(Server& server, Watch& watch, const std::string& model,
                        const Calibration& calibration, const Workload& workload);
    void add_power_of(const LoadRun& run, const std::string& called, Metrics& metrics) const;
    std::variant<Measured, Failure> once(Server& server, Watch& watch, const std::string& model,
                                         const Calibration& calibration);
    void keep(const std::string& model, const std::string& called, const LoadTest& test,
              const LoadTestResult& result);
    [[nodiscard]] std::optional<Failure> interrupted(const Server& server,
                                                     const Watch& watch) const;

    const EvaluationContext& context_;
    const MeasureOptions options_;
    const Configuration& configuration_;
    std::size_t attempt_;
    std::size_t run_ = 0;   ///< of this attempt
    std::size_t kept_ = 0;  ///< load tests of this run
    Clock::time_point deadline_;
    std::vector<Workload> workloads_;
    EarlyEnd early_end_;
    Handshake handshake_{};  ///< of the warm-up
    std::size_t least_warm_up_ =
        options_.warm_up_requests;  ///< before the workload that comes next
    double warm_up_seconds_ = 0;
    Metrics costs_{};
    double devices_ = 1;
    std::unique_ptr<MachineWatch> machine_{};  ///< over one round of workloads
};

/// Tries again what is the machine's fault and not the configuration's (Failure{infrastructure} and
/// IoError), after 1 s, 4 s, 16 s; where it stays, throws IoError: told, it would be held against
/// the configuration.
Outcome with_retries(const MeasureOptions& options, const EvaluationContext& context,
                     const std::function<Outcome(std::size_t attempt)>& evaluate);

}  // namespace servetune
