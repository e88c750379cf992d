// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts that engine files and studies have in common: parameters, conditions, constraints.

#include "servetune/engine/composition.hpp"
#include "servetune/engine/engine.hpp"
#include "servetune/io/yaml.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// What stands under bool, int, real or choice; nothing when none of them does. Throws ParseError when two do.
struct ReadDomain {
    Domain domain;
    bool offers_unset = false;
};
std::optional<ReadDomain> read_domain(const Yaml& node);
EngineParameter read_parameter(const std::string& name, const Yaml& node);
SpaceEntry read_space_entry(const std::string& name, const Yaml& node);
std::vector<Condition> read_conditions(const Yaml& node);
Constraint read_constraint(const Yaml& node);
std::map<std::string, std::string> read_texts(const Yaml& node);
std::vector<std::string> read_text_list(const Yaml& node);

}  // namespace servetune
