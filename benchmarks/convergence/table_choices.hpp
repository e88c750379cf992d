// SPDX-License-Identifier: Apache-2.0
// Which rows of which table are a task.
#pragma once

#include "servetune/objective.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace servetune::convergence {

struct TableChoice {
    std::string task, table, what;
    Objective objective;
    /// Columns that are the task: the rows with this cell, or whose cell begins with it where it
    /// ends with a slash. They are no parameters.
    std::map<std::string, std::string> fixed{};
    double success_share = 0;  ///< 0: within 5 %
    /// Strategies were tuned on it before tasks were split.
    bool known_before = false;
    /// What, with the pairs of levels that occur, says which rows exist: the same constraints as a
    /// list of rows, told in a form that is quick to decide. Nothing: the list.
    std::optional<std::vector<std::string>> rules{};
    /// Tasks with the same word teach each other (`bayesian_learning`), the nearest in the list
    /// first. Empty: nobody does.
    std::string kind{};
};

const std::vector<TableChoice>& table_choices();

}  // namespace servetune::convergence
