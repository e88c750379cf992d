// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "dialect.hpp"

#include "engine/command_reader.hpp"
#include "engine/flag_facts.hpp"

#include "servetune/detail/perf/cost_model.hpp"
#include "servetune/detail/perf/start_failure.hpp"
#include "servetune/detail/predict/serving.hpp"
#include "servetune/error.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace simengine {

/// The engine does not take this command line; `what` is all that it says, with its line ends.
class CommandRefused : public servetune::UsageError {
public:
    CommandRefused(const std::string& text, int exit_code)
        : UsageError(text), exit_code_(exit_code) {}
    [[nodiscard]] int exit_code() const { return exit_code_; }

private:
    int exit_code_;
};

/// The words that start an engine, read as that engine reads them.
struct EngineCommand {
    std::string model;
    std::map<std::string, std::vector<std::string>>
        flags{};  ///< by its usual name: the values, in order; of a switch "true" or "false"
    servetune::Command
        modelled{};  ///< the model and what else the engine's file knows: for ServingReader
    bool wants_help = false;
    std::string folder{};  ///< of a weight cache daemon's sockets; empty: it is an engine

    [[nodiscard]] bool is_on(const std::string& flag) const;
    /// The last value given.
    [[nodiscard]] std::optional<std::string> value(const std::string& flag) const;
};

/// An engine's command, understood: what it serves, how fast, and how its start ends.
struct EngineSetup {
    const Dialect* dialect = nullptr;
    servetune::Engine engine{};
    std::string version{};
    EngineCommand command{};
    std::string help{};  ///< not empty: it was asked for, and nothing below is set
    std::vector<std::string> served_names{};  ///< what clients may ask for
    servetune::Assignment parameters{};       ///< as the cost model understood them
    std::optional<servetune::CostModel> cost{};
    servetune::StartResult start{};
};

/// Throws CommandRefused where the engine would refuse, UsageError where no engine's command is
/// given or figures are missing, IoError and ParseError for the files of the search spaces.
EngineSetup set_up(const Options& options);

}  // namespace simengine
