// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "study/study_cache.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

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
