// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/result_file.hpp"

#include <map>
#include <string>
#include <vector>

namespace servetune {

/// Adds the flags for settings of the engine to `arguments`. Throws SpaceError where the engine has
/// no such parameter, or no flag for that value.
void add_settings(std::string& arguments, const Engine& engine,
                  const std::map<std::string, std::string>& settings);

/// What a result says of its server under names of the engine's parameters: of what a person wrote
/// all, of what a server reports what differs between results, as it resolves most by itself.
std::map<std::string, std::string> changing_settings(const Engine& engine,
                                                     const PublishedResult& of,
                                                     const std::vector<PublishedResult>& all);

/// Whether a file says how its server was started: it reports all settings, or somebody wrote some
/// of a parameter's name, into this file or another of the same tool.
bool says_settings(const Engine& engine, const PublishedResult& of,
                   const std::vector<PublishedResult>& all);

/// Gives `command` to each result that has none, with its own `changing_settings` behind it. Throws
/// UsageError if the command starts none of `engines`.
void give_command(std::vector<PublishedResult>& results, const std::string& command,
                  const std::vector<Engine>& engines);

}  // namespace servetune
