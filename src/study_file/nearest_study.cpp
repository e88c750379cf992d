// SPDX-License-Identifier: Apache-2.0
#include "nearest_study.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study_file/measuring/kind.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace servetune {
namespace {

/// Of a positive number, as text.
std::string nearest_power_of_two(double number) {
    return short_number_text(std::exp2(std::round(std::log2(number))));
}

std::string class_of_workload(const Workload& workload) {
    std::string result(name_in(dataset_kinds, workload.dataset.kind));
    const auto& [input, output] =
        std::pair(workload.dataset.input_tokens, workload.dataset.output_tokens);
    if (input && *input > 0) result += " " + nearest_power_of_two(static_cast<double>(*input));
    if (output && *output > 0)
        result += " to " + nearest_power_of_two(static_cast<double>(*output));
    const Arrival& arrival = workload.arrival;
    result += ", " + std::string(name_in(arrival_kinds, arrival.kind));
    if (arrival.in_flight > 0)
        result += " " + nearest_power_of_two(static_cast<double>(arrival.in_flight));
    if (arrival.requests_per_second > 0)
        result += " " + nearest_power_of_two(arrival.requests_per_second);
    return result;
}

/// `a + b`.
std::string sum_text(const std::set<std::string>& parts) {
    std::string result;
    for (const std::string& part : parts) result += (result.empty() ? "" : " + ") + part;
    return result;
}

}  // namespace

std::string workload_class(const std::vector<Workload>& workloads) {
    std::set<std::string> classes;
    for (const Workload& workload : workloads) classes.insert(class_of_workload(workload));
    return sum_text(classes);
}

void add_profile(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    const StudyFile& file = setup.file;
    if (!file.kept.empty()) {
        for (const auto& [path, text] : file.kept)
            if (path.starts_with(profile_paths)) definition[path] = text;
        return;
    }
    const MeasuringKind& kind = kind_of(file);
    if (kind.machine == nullptr) return;
    std::set<std::string> engines;
    std::set<std::string> versions;
    for (const Engine& engine : file.composition->engines()) {
        const std::string version = kind.version(file, engine, definition);
        engines.insert(engine.name);
        versions.insert(engine.name + " " + (version.empty() ? unknown_version : version));
    }
    const auto add = [&](const char* name, const std::string& text) {
        definition[profile_paths + name] = text;
    };
    add("machine", kind.machine(file));
    add("model", file.model);
    add("engine", sum_text(engines));
    add("version", sum_text(versions));
    add("workloads", workload_class(file.workloads));
}
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
