// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/interop/published.hpp"

#include <map>
#include <string>
#include <vector>

namespace servetune {

/// Flags for what the file says of the server, and for what was given by hand. `arguments` gets
/// them. Throws SpaceError where the engine has no such parameter, or no flag for that value.
void add_settings(std::string& arguments, const Engine& engine,
                  const std::map<std::string, std::string>& settings);

/// Of the settings that a server reports, those that differ between results: it resolves most of
/// them by itself.
std::map<std::string, std::string> changing_settings(const Engine& engine,
                                                     const PublishedResult& of,
                                                     const std::vector<PublishedResult>& all);

/// Why a failure is not known to be of these settings: of one that is no parameter nobody knows
/// what it did. Empty: it is.
std::string why_settings_not_known(const Engine& engine, const PublishedResult& of,
                                   const std::map<std::string, std::string>& changing);

/// Whether a file says how its server was started: it reports all settings, or somebody wrote some
/// of a parameter's name, into this file or another of the same tool.
bool says_settings(const Engine& engine, const PublishedResult& of,
                   const std::vector<PublishedResult>& all);

}  // namespace servetune
