// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/space/level_runs.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace servetune {

/// The order in which `FeasibleSet` decides parameters, and which rules are open on the way.
///
/// A rule (a constraint, or a parameter's conditions) is open while some of its parameters are
/// decided and some are not. What has to be remembered of a half made configuration is the state of
/// its open rules, so the order keeps few rules open: the next parameter is, among those whose
/// parents are decided, the one that leaves the fewest open (ties: the order given). This is the
/// usual greedy for decision diagrams and for bucket elimination ("min-width"; Dechter, Constraint
/// Processing, 2003, chapter 4). An integer with runs of levels (level_runs.hpp) waits for the
/// others of its rules: its runs are few once these are decided.
struct DecisionOrder {
    explicit DecisionOrder(const SearchSpace& space);

    std::vector<std::size_t> sequence;  ///< parameters (indices), parents before children
    std::vector<std::vector<std::size_t>>
        constraints_of;  ///< by parameter: the constraints that speak of it
    std::vector<std::vector<std::size_t>>
        open_constraints;  ///< by depth: open before deciding sequence[depth]
    std::vector<std::vector<std::size_t>>
        open_children;          ///< by depth: undecided, with a decided parent
    std::vector<bool> is_free;  ///< by depth: no rule looks at the parameter decided there
};

}  // namespace servetune
