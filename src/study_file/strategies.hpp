// SPDX-License-Identifier: Apache-2.0
// The strategies that a study file can name.
#pragma once

#include "servetune/study_file.hpp"

#include <memory>
#include <string_view>

namespace servetune {

struct StrategyKind {
    std::string_view name;  ///< a key of `strategy` (keys.hpp)
    bool takes_several_goals;
    std::unique_ptr<Strategy> (*make)(const StudySetup& setup);
};

/// Names of those that take several goals.
[[nodiscard]] std::vector<std::string> strategies_for_several_goals();

/// The row of a name that `read_strategy` has let pass. Throws std::logic_error where the table
/// lacks a key's row.
[[nodiscard]] const StrategyKind& strategy_kind(std::string_view name);

}  // namespace servetune
