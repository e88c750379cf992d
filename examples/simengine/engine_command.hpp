// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialect.hpp"

#include "engine/command_reader.hpp"
#include "engine/flag_facts.hpp"
#include "servetune/error.hpp"

#include <filesystem>
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

/// `words` is everything behind those that name the program. Throws CommandRefused, and IoError or
/// ParseError for an options file.
EngineCommand read_engine_command(const Dialect& dialect, const std::vector<std::string>& words,
                                  const servetune::FlagFacts& facts,
                                  const servetune::Engine& engine,
                                  const servetune::CommandReader& commands);

/// What --help prints: every flag, laid out as the engine's own help is.
std::string help_text(const Dialect& dialect, const servetune::FlagFacts& facts);

/// The JSON of a file in YAML or JSON. Throws IoError and ParseError.
std::string options_json(const std::filesystem::path& file);

}  // namespace simengine
