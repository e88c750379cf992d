// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/command_reader.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace servetune {

/// One result with its command read.
struct SeenRow {
    std::size_t index = 0;  ///< of the results
    const Engine* engine = nullptr;
    std::string model{};                    ///< as written; empty: none
    std::map<std::string, Value> values{};  ///< parameter -> value
    std::map<std::string, Setting>
        unknown{};          ///< name made of a flag or variable that the engine file does not have
    std::string unread{};   ///< the first word that is neither
    std::string variant{};  ///< of the checkpoint; empty: the model itself
};

/// A row of what a command of `engine` says. Of parameters that share a flag the active one is set.
SeenRow seen_row(std::size_t index, const Engine& engine, const CommandSettings& command);

/// The lines below `space:` of a study over these results: each flag that some command sets, with
/// the values that were seen and the default where a command leaves it out. `checkpoints`: those of
/// other quantizations, by their names. What is not in an engine file is declared, and said in
/// `remarks`.
std::string space_of_rows(const std::vector<SeenRow>& all,
                          const std::map<std::string, std::string>& checkpoints,
                          std::vector<std::string>& remarks, const SeenRow* start = nullptr);

}  // namespace servetune
