// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace autotune {

/// What an agent is told of a command that has ended: what decides, in a few hundred words, with
/// the reason and the next step. `printed`: its standard output, JSON or text; `said`: the last
/// lines of its standard error.
nlohmann::ordered_json answer_of(const std::string& tool, int exit_code, const std::string& printed,
                                 const std::vector<std::string>& said);

}  // namespace autotune
