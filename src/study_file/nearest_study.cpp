// SPDX-License-Identifier: Apache-2.0
#include "nearest_study.hpp"

#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study_profile.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace servetune {
namespace {

using ProfileTexts = std::map<std::string, std::string>;

std::string text_under(const ProfileTexts& definition, const std::string& path) {
    const auto found = definition.find(path);
    return found == definition.end() ? "" : found->second;
}

/// The leading goal comes first.
std::string leading_goal(const ProfileTexts& definition) {
    const std::string goals = text_under(definition, "objective");
    return goals.substr(0, goals.find(", "));
}

std::optional<NearestStudy::Like> likeness(const ProfileTexts& mine, const ProfileTexts& other) {
    for (const char* part : {"machine", "model", "engine", "workloads"})
        if (text_under(mine, profile_paths + part) != text_under(other, profile_paths + part))
            return std::nullopt;
    if (leading_goal(mine) != leading_goal(other)) return std::nullopt;
    const std::string version = text_under(mine, profile_paths + "version");
    if (version != text_under(other, profile_paths + "version"))
        return NearestStudy::Like::other_version;
    const bool known = version.find(unknown_version) == std::string::npos;
    return known && what_is_asked(mine) == what_is_asked(other) ? NearestStudy::Like::same_study
                                                                : NearestStudy::Like::same_case;
}

double time_of_last_result(const std::vector<Trial>& trials) {
    double result = 0;
    for (const Trial& trial : trials)
        if (trial.told()) result = std::max(result, trial.told_at.value_or(0));
    return result;
}

}  // namespace

std::optional<NearestStudy> nearest_study(const StudySetup& setup, const StudyCache& cache,
                                          const std::function<void(const std::string&)>& say) {
    const ProfileTexts mine = setup.definition();
    if (!mine.contains(profile_paths + "machine")) return std::nullopt;
    std::optional<NearestStudy> result;
    for (const CachedStudy& cached : cache.studies(say)) {
        const auto like = likeness(mine, cached.definition);
        if (!like || (result && *like > result->like)) continue;
        try {
            NearestStudy one{*like, cached.file, text_under(cached.definition, "study"),
                             text_under(cached.definition, profile_paths + "version"),
                             SqliteJournal::read(cached.file).trials()};
            one.last_result = time_of_last_result(one.trials);
            const bool nearer =
                !result || one.like < result->like || one.last_result > result->last_result;
            if (one.last_result > 0 && nearer) result = std::move(one);
        } catch (const IoError& error) {
            say(std::string("the cache's ") + error.what() + "; it is left out, remove it");
        }
    }
    return result;
}

}  // namespace servetune
