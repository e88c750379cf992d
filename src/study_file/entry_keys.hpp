// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"
#include "yaml.hpp"

#include <string>
#include <vector>

namespace servetune {

/// Whether an entry under `space` is the engine's parameter: it has its name or its concept, the
/// engine's name before it or not.
bool speaks_of(const std::string& name, const Engine& engine, const Parameter& parameter);

/// Throws ParseError for each key of an entry under `space` that changes nothing there: how a
/// parameter is passed, when it is active and which versions have it stands in the engine's file.
/// `node` may be any value; `engines` are as their files have them.
void check_keys_of_entry(const std::string& name, const Yaml& node,
                         const std::vector<Engine>& engines);

/// The same of a parameter that no command of an engine passes: a level of load, or one of a study
/// without an engine.
void check_keys_of_unpassed(const Yaml& node);

}  // namespace servetune
