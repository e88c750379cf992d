// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/perf/model_spec.hpp"
#include "servetune/objective.hpp"
#include "servetune/workload.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

struct MeasuredLoad;

/// The workloads of a study: those of the objective with their weights, and those that are only
/// reported.
struct StudyWorkloads {
    std::vector<Workload> searched;
    std::vector<Workload> reported{};

    /// What cannot be in them, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// How a server that serves is measured, whoever started it.
struct MeasureOptions {
    LoadOptions load{};           ///< time-outs of requests; `ignore_eos` comes from the workload
    std::vector<Limit> limits{};  ///< for goodput, and for workloads whose load is looked for
    /// A load test ends once its configuration is surely slower than the best so far by so much
    /// (EvaluationContext:: to_beat), or by four times the noise; 0: never.
    double give_up = 0.1;
    double trial_within_seconds = 7200;  ///< start to stop; a longer trial is Failure{hung}
    /// At least so many before the first workload; before each workload as many as make the server
    /// steady (`warm_up`). 0: none at all.
    std::size_t warm_up_requests = 16;
    std::size_t infrastructure_retries = 3;  ///< after 1 s, 4 s, 16 s, ...
    std::optional<HardwareSpec> hardware{};  ///< for the audit's physics
    std::vector<ModelSpec> models{};         ///< the same
    std::optional<MachineWatchOptions>
        watch{};  ///< over the machine, where the server is ours; nothing: not watched
    /// One line for the user's log: `trial 7: serves after 61 s`. What it throws is ignored: no
    /// measurement is lost for a line.
    std::function<void(const std::string&)> say{};
    /// What a trial does at this moment, for a status line: `starting the engine`, `chat: 120 of
    /// 300 requests`. From any thread, twice a second at most; what it throws is ignored.
    std::function<void(std::uint64_t trial, const std::string& what)> phase{};
    /// Each load test in full, as soon as it is over; several at once where there are workers. What
    /// it throws is said and costs nothing of what was measured.
    std::function<void(const MeasuredLoad&)> keep{};

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

}  // namespace servetune
