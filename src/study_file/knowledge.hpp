// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "study/study_cache.hpp"

namespace servetune {

/// What a study's `knowledge` comes to: sources for the optimizer, and each in words.
struct GatheredKnowledge {
    Beliefs beliefs{};
    std::vector<std::string>
        warnings{};         ///< what a person should know of a source, a sentence each
    std::string earlier{};  ///< what a study by default came to; not among `texts`
    /// one of each choice, with a fingerprint of what it rests on; of one that knows nothing here
    /// too
    std::vector<std::string> texts{};
};

/// Reads all of a study's sources for its space. `study` must outlive the beliefs. Throws IoError
/// for what is not there, UsageError for an earlier study of another metric or direction, one that
/// has measured nothing, and one that has no parameter in common; for a source that is there twice,
/// and for the study's own journal in `own_folder`: what counts twice is believed twice. A cost
/// model without the hardware's or the model's figures knows nothing, which is no error, and
/// neither is a study by default that teaches nothing.
GatheredKnowledge gather_knowledge(const StudyFile& study, const SearchSpace& space,
                                   const std::filesystem::path& own_folder = {});

/// A table's rows as the trials of a study: one for each different configuration, numbered as they
/// stand; of `workloads` (name, weight) together where the table has workloads, and then only where
/// every one of them has a row. Throws UsageError where a table with workloads has none of these.
std::vector<Trial> trials_of(const MeasuredTable& table, const SearchSpace& space,
                             const std::vector<std::pair<std::string, double>>& workloads);

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

/// `profile.version` where nothing tells an engine's version.
inline const std::string unknown_version = "unknown";

/// The class of a study's workloads: of each the kind of data, input and output tokens and the load
/// to the nearest power of two, and the kind of arrival, such as `random 64 to 128 tokens,
/// concurrency 16`. Lengths that the data decide are left out.
[[nodiscard]] std::string workload_class(const std::vector<Workload>& workloads);

/// Adds `profile.*` (sqlite_journal.hpp) to the definition of a study that load-tests a server: of
/// which machine, model, engine, version and class of workloads its results are. Of a study that is
/// only read it is as its journal has it. Others have none.
void add_profile(const StudySetup& setup, std::map<std::string, std::string>& definition);

/// A study of the cache that a new one can use: of the same machine, model, engine and class of
/// workloads, with the same leading goal.
struct NearestStudy {
    /// How near, the nearest first.
    enum class Like {
        /// all that decides its results and their judgement is the same, and the engine's version
        /// is known
        same_study,
        same_case,     ///< it asks something else, or nothing tells the engine's version
        other_version  ///< of the engine
    };
    Like like = Like::same_study;
    std::filesystem::path file{};  ///< its journal
    std::string name{};
    std::string version{};        ///< `profile.version`: the engine's then
    std::vector<Trial> trials{};  ///< with at least one result
    double last_result = 0;       ///< seconds since 1970 UTC
};

/// The nearest study of the cache, of several the one with the latest result; nothing: none is
/// near. `say` gets a line for each file that cannot be read.
std::optional<NearestStudy> nearest_study(const StudySetup& setup, const StudyCache& cache,
                                          const std::function<void(const std::string&)>& say);

}  // namespace servetune
