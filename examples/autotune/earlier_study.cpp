// SPDX-License-Identifier: Apache-2.0
#include "earlier_study.hpp"

#include "clocks.hpp"

#include "host/environment.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/journal_snapshot.hpp"
#include "study_file/measuring/kind.hpp"
#include "study_file/nearest_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <system_error>

namespace autotune {

using namespace servetune;

namespace {

using Like = NearestStudy::Like;

std::filesystem::path kept_beside(const std::filesystem::path& folder) {
    return folder / "earlier.db";
}

std::string count_of_results(const std::vector<Trial>& trials) {
    const auto told = std::count_if(trials.begin(), trials.end(),
                                    [](const Trial& trial) { return trial.told(); });
    return fmt::format("{} {}", told, told == 1 ? "trial" : "trials");
}

/// What of the surroundings differs from the last trial's; empty: nothing, or it is not known.
std::string changes_since(const std::vector<Trial>& trials, const Environment& now) {
    for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial)
        if (trial->environment)
            return fmt::format("{}", fmt::join(differences(*trial->environment, now), "; "));
    return "";
}

/// `2026-11-01 10:00 with vllm 0.11.0`.
std::string when_and_with_what(const NearestStudy& found) {
    return local_time_text(found.last_result) + " with " + found.version;
}

std::string version_now(const StudySetup& setup) {
    const auto definition = setup.definition();
    const auto version = definition.find(profile_paths + "version");
    return version == definition.end() ? unknown_version : version->second;
}

bool may_look(const RunArguments& arguments, const StudyFile& file,
              const std::filesystem::path& folder) {
    std::error_code unknown;
    return kind_of(file).machine != nullptr && !arguments.no_cache &&
           !std::filesystem::exists(SqliteJournal::file_of(folder), unknown);
}

bool asks_for_knowledge(const StudyFile& file) {
    return std::any_of(file.knowledge.begin(), file.knowledge.end(),
                       [](const KnowledgeChoice& one) { return !one.by_default; });
}

std::string why_not_learned(const StudyFile& file) {
    if (file.strategy.name != "bayesian")
        return "the strategy " + file.strategy.name + " learns from none";
    if (file.knowledge.empty() || asks_for_knowledge(file)) return "'knowledge' says what is known";
    return "none of its results holds here";
}

std::vector<std::string> answer_of_study(const NearestStudy& found, const StudySetup& setup) {
    const Headline headline = headline_of(setup, found.trials);
    std::vector<std::string> lines{
        fmt::format("this study was made before, on {}, in {}: {}", when_and_with_what(found),
                    count_of_results(found.trials), found.file.string())};
    std::string verdict = "  then: " + headline.title + ".";
    for (const std::string* sentence : {&headline.reason, &headline.advice})
        if (!sentence->empty()) verdict += " " + *sentence;
    lines.push_back(std::move(verdict));
    std::istringstream command(headline.command);
    for (std::string line; std::getline(command, line);) lines.push_back("  " + line);
    if (const std::string changes = changes_since(found.trials, setup.environment());
        !changes.empty())
        lines.push_back("  since then: " + changes);
    lines.push_back(setup.earlier.empty() ? "all is measured anew; --no-cache does not look"
                                          : "all is measured anew, what was best then as the "
                                            "second trial; --no-cache does not look");
    return lines;
}

}  // namespace

std::optional<NearestStudy> found_in_cache(const RunArguments& arguments, const StudyFile& file,
                                           const std::filesystem::path& folder,
                                           const std::function<void(const std::string&)>& say) {
    if (!may_look(arguments, file, folder)) return std::nullopt;
    const StudyCache cache(StudyCache::users());
    if (cache.empty()) return std::nullopt;
    StudySetup asked = set_up(arguments.load());  // what it finds becomes knowledge of the other
    return nearest_study(asked, cache, say);
}

void learn_from_cache(StudyFile& file, const std::filesystem::path& folder,
                      const std::optional<NearestStudy>& found) {
    if (file.strategy.name != "bayesian" || file.knowledge.empty() || asks_for_knowledge(file))
        return;
    std::error_code unknown;
    const bool resumes = std::filesystem::exists(SqliteJournal::file_of(folder), unknown);
    const std::filesystem::path earlier = found ? found->file : kept_beside(folder);
    if (found || (resumes && std::filesystem::exists(earlier, unknown)))
        file.knowledge.push_back(
            {.kind = KnowledgeChoice::Kind::study, .path = earlier, .by_default = true});
}

std::vector<std::string> lines_of(const NearestStudy& found, const StudySetup& setup) {
    if (found.like == Like::same_study) return answer_of_study(found, setup);
    if (setup.earlier.empty())
        return {fmt::format("an earlier study, of {}, is not used, for {}: {}",
                            when_and_with_what(found), why_not_learned(setup.file),
                            found.file.string())};
    return {
        fmt::format("learning from {}, of {}{}: {}", setup.earlier, when_and_with_what(found),
                    found.like == Like::other_version
                        ? " (now " + version_now(setup) + ")"
                        : ", on the same machine, with the same model, engine and kind of workload",
                    found.file.string())};
}

std::string why_nothing_found(const RunArguments& arguments, const StudyFile& file,
                              const std::filesystem::path& folder) {
    if (!may_look(arguments, file, folder) || StudyCache(StudyCache::users()).empty()) return "";
    return "no earlier study in " + StudyCache::users().string() +
           " is of this machine, model, engine, kind of workload and goal";
}

std::string then_and_now(const NearestStudy& found, const StudySetup& setup, const Headline& now) {
    if (found.like != Like::same_study) return "";
    const Headline then = headline_of(setup, found.trials);
    return fmt::format(
        "then, on {}: {}; now, with {}: {}; {}", when_and_with_what(found), then.title,
        version_now(setup), now.title,
        then.command == now.command ? "the command is the same" : "the command is another");
}

void keep_beside(const NearestStudy& found, const StudySetup& setup,
                 const std::filesystem::path& folder,
                 const std::function<void(const std::string&)>& say) {
    if (setup.earlier.empty()) return;
    try {
        copy_journal(found.file, kept_beside(folder), 0600);
    } catch (const IoError& error) {
        say(std::string("the next run here will not know what this one learned from: ") +
            error.what());
    }
}

void keep_for_later(const StudySetup& setup, const std::vector<Trial>& trials,
                    const std::filesystem::path& folder,
                    const std::function<void(const std::string&)>& say) {
    std::set<Configuration> measured;
    for (const Trial& trial : trials)
        if (trial.of_search() && trial.measurement() != nullptr)
            measured.insert(trial.configuration);
    const bool worth_it =
        measured.size() > 1 && measured.contains(setup.problem->space.default_configuration());
    if (!worth_it || kind_of(setup.file).machine == nullptr) return;
    try {
        say(StudyCache(StudyCache::users()).keep(folder));
    } catch (const IoError& error) {
        say(std::string("not kept for later runs: ") + error.what());
    }
}

}  // namespace autotune
