// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts that engine files and studies have in common: parameters, conditions, constraints.

#include "servetune/detail/engine/composition.hpp"
#include "servetune/engine.hpp"
#include "yaml.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// What stands under bool, int, real or choice; nothing when none of them does. Throws ParseError
/// when two do.
struct ReadDomain {
    Domain domain;
    bool offers_unset = false;
};
/// The models keep a table of the distances between any two values: 32 MB for so many.
inline constexpr std::size_t most_listed_values = 2000;
std::optional<ReadDomain> read_domain(const Yaml& node);
EngineParameter read_parameter(const std::string& name, const Yaml& node);
SpaceEntry read_space_entry(const std::string& name, const Yaml& node);
std::vector<Condition> read_conditions(const Yaml& node);
Constraint read_constraint(const Yaml& node);
/// A text that may be a path: `~` and `~user` at its start expanded.
std::string text_with_home(const Yaml& node);
/// Names of chips' architectures. Throws ParseError for one that is not known.
std::vector<std::string> read_architectures(const Yaml& node);

}  // namespace servetune
