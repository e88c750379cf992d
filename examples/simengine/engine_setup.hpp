// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "engine_command.hpp"

#include "servetune/detail/perf/cost_model.hpp"
#include "servetune/detail/perf/start_failure.hpp"
#include "servetune/detail/predict/serving.hpp"

#include <optional>
#include <string>
#include <vector>

namespace simengine {

/// An engine's command, understood: what it serves, how fast, and how its start ends.
struct EngineSetup {
    const Dialect* dialect = nullptr;
    servetune::Engine engine{};
    std::string version{};
    EngineCommand command{};
    std::string help{};  ///< not empty: it was asked for, and nothing below is set
    std::vector<std::string> served_names{};  ///< what clients may ask for
    servetune::Assignment parameters{};       ///< as the cost model understood them
    std::vector<std::string> not_modelled{};  ///< set, and without an effect here
    std::optional<servetune::CostModel> cost{};
    servetune::StartResult start{};
    std::optional<servetune::LoadDefect> defect{};

    /// The lines that the engine's log has for this event (EngineTraits::log).
    [[nodiscard]] std::vector<std::string> log_lines(const std::string& event) const;
};

/// Throws CommandRefused where the engine would refuse, UsageError where no engine's command is
/// given or figures are missing, IoError and ParseError for the files of the search spaces.
EngineSetup set_up(const Options& options);

}  // namespace simengine
