// SPDX-License-Identifier: Apache-2.0
// What the cost model expects of a table's rows.
#pragma once

#include "servetune/detail/search/prior_mean.hpp"
#include "table_choices.hpp"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace servetune::convergence {

/// A row's cells by their columns, those that are the task included.
using TableCells = std::map<std::string, std::string>;

/// Each row as the command that gave it, read and estimated by the shipped files; fitted to what is
/// measured as a study's cost model is. Null where it can predict fewer than half of the rows.
std::shared_ptr<const PriorMean> belief_of(
    const TableChoice& choice, const std::vector<std::pair<Configuration, TableCells>>& rows);

}  // namespace servetune::convergence
