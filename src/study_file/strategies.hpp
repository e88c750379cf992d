// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"
#include "servetune/search_space.hpp"
#include "servetune/study_file.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

/// Configurations that a person or a program suggests: a YAML (or JSON) list of mappings, parameter
/// -> value. What a mapping leaves out has its default. Throws IoError, and ParseError
/// (`file:line:column: ...`) for a parameter that is not known or has no effect there, a value
/// outside its domain and a constraint that is broken.
std::vector<Configuration> read_suggestions(const std::filesystem::path& file,
                                            const Composition& composition,
                                            const SearchSpace& space);

/// Throws UsageError for a strategy that takes no suggestions.
void check_takes_suggestions(const std::string& strategy);

/// A value as the parameter has it, where only its type differs: not every language tells 3 from
/// 3.0, and digits may be text in a space. Otherwise unchanged.
Value as_parameter_has_it(const Parameter& parameter, Value value);

}  // namespace servetune
