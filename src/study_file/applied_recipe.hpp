// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recipes.hpp"

#include <map>
#include <string>
#include <vector>

namespace servetune {

/// A recipe as one version of its engine takes it on a chip.
struct AppliedRecipe {
    Assignment values{};                   ///< by the engine file's names of parameters
    std::vector<std::string> arguments{};  ///< flags without a part in speed that the version has
    std::map<std::string, std::string>
        environment{};  ///< variables that no file here knows: kept as published
    std::vector<std::string> translated{};  ///< `--tp is written --tp-size`
    std::vector<std::string> dropped{};     ///< what it lacks of the recipe, each with the reason
};

/// Reads a recipe's flags in every spelling that any version has. `version`: of the engine; empty:
/// the newest. Throws IoError and ParseError.
[[nodiscard]] AppliedRecipe applied(const Recipe& recipe, const Engine& engine,
                                    const std::string& version, const HardwareSpec& chip,
                                    const std::filesystem::path& root);

/// The engine with these values fixed and all others at their defaults: its one configuration is
/// the recipe. Throws SpaceError where the engine's rules forbid it.
[[nodiscard]] Composition composed(const AppliedRecipe& recipe, const Engine& engine,
                                   const std::string& version, const HardwareSpec& chip);

}  // namespace servetune
