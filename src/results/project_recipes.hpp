// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "study_file/recipes.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

/// The recipes of vllm-project/recipes for a model on a chip: of one file, or of all files of a
/// folder and those below it. Each variant is one, with the words that the project's site shows for
/// one node, tensor parallelism and the features that are on by default. `unread` gets a sentence
/// for each that cannot be used. Throws IoError; ParseError where one file is no such recipe, or a
/// folder has none.
[[nodiscard]] std::vector<Recipe> recipes_of_project(const std::filesystem::path& path,
                                                     const RecipeWish& wish,
                                                     const std::vector<HardwareSpec>& known,
                                                     std::vector<std::string>& unread);

}  // namespace servetune
