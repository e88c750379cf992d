// SPDX-License-Identifier: Apache-2.0
#pragma once

// What can be said of a study before it starts anything, a sentence each.

#include "servetune/study_file.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace servetune {

/// Engines of which the study names a version that is newer than all whose flags are known, each
/// with what was checked last.
std::vector<std::string> unchecked_versions(const Composition& composition,
                                            const Catalogue& catalogue);
/// What keeps the study from running on this machine, each with what was looked for: models whose
/// path leads nowhere.
std::vector<std::string> missing_models(const StudyFile& file);
/// The same of containers: images that are not here, nobody who runs them.
std::vector<std::string> missing_images(const StudySetup& setup);
/// The same of an objective that names power or energy where nothing measures it. Asks a tool only
/// then.
std::vector<std::string> missing_power(const StudyFile& file);
/// What the environment of this program sets of what the study's commands set: engines inherit it.
std::vector<std::string> set_by_own_environment(const StudyFile& file);

/// Why the cost model's figures for this study's engines may be wrong, a sentence each: never
/// checked on the chip, or off by more than a quarter there (`checked` of the traits). `hardware`:
/// in place of the study's. Empty too where the chip is not known.
std::vector<std::string> doubts_of_cost_model(const StudyFile& file,
                                              const std::string& hardware = "");

/// One sentence and a memory plan where no configuration of the space would start; empty where one
/// does. Looks at the default, at every configuration of a space of at most `most`, else at that
/// many drawn evenly (and says so).
std::string why_nothing_starts(const SimulateEvaluator& evaluator, const Problem& problem,
                               std::size_t most = 2000);

}  // namespace servetune
