// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <string>
#include <vector>

namespace servetune {

/// What published deployments come to in a study.
struct RecipeWinners {
    std::vector<Winner>
        winners{};  ///< one of each engine that has a recipe which the study can try
    std::vector<std::string>
        said{};  ///< of each winner its source, with a fingerprint of the recipe
    std::vector<std::string> left_out{};  ///< why a nearest recipe is not tried, a sentence each
};

/// Looks for the nearest recipe of each engine of the study, by its model, chip and version, and
/// makes a configuration of the study of it. Values that the study does not have are the nearest of
/// its numbers, or left out, which `Winner::why` says.
[[nodiscard]] RecipeWinners recipe_winners(const StudyFile& study, const SearchSpace& space);

}  // namespace servetune
