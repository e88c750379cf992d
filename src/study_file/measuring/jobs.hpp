// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the ways to run engines as jobs of a cluster have in common.

#include "study_file/yaml.hpp"

#include <functional>
#include <string>

namespace servetune {

/// Throws ParseError where `deploy` says devices or cores, which `cluster` gives each `job`
/// itself.
void refuse_parts_of_machine(const Yaml& deploy, const std::string& cluster,
                             const std::string& job);

/// Throws ParseError for a variable of `deploy` that is a secret by its name or its value.
/// `remedy`: who would see it and what to do, for a variable of this name.
void refuse_secrets(const Yaml& deploy,
                    const std::function<std::string(const std::string& name)>& remedy);

}  // namespace servetune
