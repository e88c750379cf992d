// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

namespace servetune {

/// What a study's `knowledge` comes to: sources for the optimizer, and each in words.
struct GatheredKnowledge {
    Beliefs beliefs{};
    /// one of each choice, with a fingerprint of what it rests on; of one that knows nothing here
    /// too
    std::vector<std::string> texts{};
};

/// Reads all of a study's sources for its space. `study` must outlive the beliefs. Throws IoError
/// for what is not there, UsageError for an earlier study of another metric or direction, one that
/// has measured nothing, and one that has no parameter in common; for a source that is there twice,
/// and for the study's own journal in `own_folder`: what counts twice is believed twice. A cost
/// model without the hardware's or the model's figures knows nothing, which is no error.
GatheredKnowledge gather_knowledge(const StudyFile& study, const SearchSpace& space,
                                   const std::filesystem::path& own_folder = {});

/// Parameter -> concept, by the engines that ship: `vllm.max_num_seqs` by its engine, a name alone
/// where all engines that have it mean the same by it.
std::map<std::string, std::string> concepts_of(const std::vector<Trial>& trials,
                                               const Catalogue& catalogue);

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

/// Adds `profile.*` (sqlite_journal.hpp) to the definition of a study that load-tests a server: of
/// which machine, model, engine and version its results are. Of a study that is only read it is as
/// its journal has it. Others have none.
void add_profile(const StudySetup& setup, std::map<std::string, std::string>& definition);

}  // namespace servetune
