// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/attach_evaluator.hpp"
#include "servetune/command_evaluator.hpp"
#include "servetune/detail/perf/engine_core.hpp"
#include "servetune/engine_evaluator.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace servetune {

// What measures the trials of a study: one of the kinds below. src/study_file/evaluator_types.cpp
// has their table.

/// No `evaluator`: whoever asks and tells measures (`autotune ask-tell`).
struct MeasuredOutside {};

/// `evaluator: {replay: ...}`: answers come from a table of measured configurations.
struct ReplayChoice {
    std::filesystem::path table;
    bool exclude_unmeasured = false;
    double noise_cv = 0;
    double delay_seconds = 0;
};

/// `evaluator: {simulate: ...}`: answers are predictions of the cost model and the simulator.
struct SimulateChoice {
    StepNoise noise{};
    std::map<std::string, std::filesystem::path>
        traits{};  ///< engine -> file, in place of those that ship
};

/// `evaluator: {attach: ...}`: a load test of a server that somebody else runs.
struct AttachChoice {
    AttachEvaluator::Options options{};
    std::string api_key_environment{};  ///< the variable that holds the key; empty: none is sent
};

/// `evaluator: {deploy: ...}`: a load test of an engine that is started for it.
struct DeployChoice {
    EngineEvaluator::Options options{};
    /// the variable that holds the key for our requests; empty: none is sent
    std::string api_key_environment{};
    bool watch = true;  ///< measure again what a throttled or shared machine disturbed
    /// At most one of them; none: processes of this machine.
    std::optional<ContainerOptions> container{};
    std::optional<WrappedOptions> wrapped{};
    /// Whether a scheduler chooses machines and devices, since the study lists none.
    [[nodiscard]] bool in_jobs() const {
        return wrapped && options.deploy.gpus.empty() && options.deploy.cores.empty();
    }
    /// Whether the engine runs on another machine than this program, as far as is known.
    [[nodiscard]] bool elsewhere() const { return wrapped.has_value(); }
    std::size_t workers =
        1;  ///< trials at once; each has as many of the GPUs and cores as the others
};

/// `evaluator: {command: ...}`: a program of the user's measures.
struct CommandChoice {
    std::vector<std::string>
        words{};  ///< as written: a study that moved with its program is the same study
    CommandEvaluator::Options options{};
};

using EvaluatorConfig = std::variant<MeasuredOutside, ReplayChoice, SimulateChoice, AttachChoice,
                                     DeployChoice, CommandChoice>;

}  // namespace servetune
