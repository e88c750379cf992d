// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "study/study_cache.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

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
        same_study,  ///< all that decides its results and their judgement is the same, and the engine's version is known
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
