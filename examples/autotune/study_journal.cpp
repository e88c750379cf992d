// SPDX-License-Identifier: Apache-2.0
#include "study_journal.hpp"

#include "observers.hpp"
#include "output.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/version.hpp"
#include "study/plain_value.hpp"
#include "study_file/readers.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <system_error>

namespace autotune {

bool has_journal(const fs::path& folder) {
    std::error_code unknown;
    return fs::exists(SqliteJournal::file_of(folder), unknown);
}

SqliteJournal read_journal(const StudySetup& setup, const fs::path& folder) {
    SqliteJournal journal = SqliteJournal::read(folder);
    if (setup.file.source.of_journal) return journal;  // it says itself what the study was
    std::map<std::string, std::string> definition = setup.definition();
    // Options of `run` say these, which no reader takes.
    for (const auto& [path, text] : journal.definition())
        if (path == "suggestions" || path.starts_with("knowledge[")) definition.emplace(path, text);
    if (const std::string changes = journal.changes_in(definition); !changes.empty())
        put_text(stderr, "autotune: " + SqliteJournal::file_of(folder).string() +
                             " was last written by a study that differs from this one:" + changes);
    return journal;
}

std::string_view ended_because(const StudySetup& setup, const std::vector<Trial>& trials,
                               const fs::path& folder) {
    if (somebody_writes(folder)) return "";
    const std::string how = last_end(folder);
    // Another run goes on after the others, and after one of fewer trials than the study has.
    if (const auto reason = named_in(stop_reasons, how.substr(0, how.find(' ')));
        reason && *reason <= StopReason::nothing_starts &&
        (*reason != StopReason::trials_spent || how.ends_with(spent_of(setup.file.budget))))
        return name_in(stop_reasons, *reason);
    if (!std::ranges::all_of(trials, &Trial::told)) return "";
    if (std::size_t(std::ranges::count_if(trials, &Trial::of_search)) >= setup.file.budget.trials)
        return name_in(stop_reasons, StopReason::trials_spent);
    if (!how.empty()) return "";
    const std::vector<Trial> search = search_history(*setup.problem, trials);
    Rng rng(0);
    const bool finished = !search.empty() && std::holds_alternative<Finished>(
                                                 setup.strategy->ask(*setup.problem, search, rng));
    return finished ? name_in(stop_reasons, StopReason::strategy_finished) : "";
}

bool somebody_writes(const fs::path& folder) {
    struct stat seen {};
    if (stat((folder / "study.lock").c_str(), &seen) != 0) return false;
    std::ostringstream file;
    file << std::hex;
    const auto two = [&](unsigned number) {
        if (number < 16) file << '0';
        file << number;
    };
    two(major(seen.st_dev));
    file << ':';
    two(minor(seen.st_dev));
    file << ':' << std::dec << seen.st_ino;
    std::ifstream locks("/proc/locks");
    for (std::string line; std::getline(locks, line);)
        if (contains(line, "FLOCK") && contains(line, " " + file.str() + " ")) return true;
    return false;
}

void add_earlier_studies(StudyFile& file, const std::vector<fs::path>& learn_from) {
    if (!learn_from.empty() && file.strategy.name != "bayesian")
        throw UsageError("--learn-from: the strategy '" + file.strategy.name +
                         "' cannot learn from other studies, 'bayesian' can");
    for (const fs::path& earlier : learn_from)
        file.knowledge.push_back({.kind = KnowledgeChoice::Kind::study, .path = earlier});
}

Assignment settings_of(const StudyFile& file, const SearchSpace& space,
                       const std::vector<std::string>& settings) {
    Assignment result;
    for (const std::string& setting : settings) {
        const auto equals = setting.find('=');
        if (equals == std::string::npos)
            throw UsageError("NAME=VALUE is wanted, such as max_num_seqs=64; got '" + setting +
                             "'");
        const Parameter& parameter = space.at(file.composition->resolve(setting.substr(0, equals)));
        const Value value = read_for(parameter, setting.substr(equals + 1));
        result[parameter.name] =
            parameter.contains(value) ? value : file.composition->normalized(parameter.name, value);
    }
    return result;
}

void add_suggestions(StudyFile& file, const std::vector<fs::path>& suggest) {
    if (!suggest.empty()) check_takes_suggestions(file.strategy.name);
    file.suggestions = suggest;
}

std::optional<SqliteJournal> open_journal(const fs::path& folder, const StudySetup& setup,
                                          bool accept_changes) {
    try {
        auto journal = SqliteJournal::open(
            folder,
            {setup.file.name, setup.definition(), std::string(library_version), setup.texts()},
            accept_changes, [](const std::string& line) { put_text(stderr, "autotune: " + line); });
        journal.keep_environment([&setup] { return setup.environment(); });
        return journal;
    } catch (const IoError& error) {
        put_text(stderr, complaint_of(error));
        return std::nullopt;
    }
}

void end_what_was_left(const StudySetup& setup) {
    const auto [mark, stop_within_seconds, launcher] = setup.file.processes();
    if (launcher) {
        for (const std::string& left : launcher->leftovers(mark))
            complain("autotune: removing what an earlier run left: {}", left);
        for (const std::string& why : launcher->end_leftovers(mark)) complain("autotune: {}", why);
    }
    for (const Leftover& left : leftovers(mark))
        complain("autotune: ending what an earlier run left: {} ({})", left.id, left.command);
    const std::chrono::duration<double> patience(stop_within_seconds);
    for (const Leftover& left :
         end_leftovers(mark, std::chrono::ceil<std::chrono::milliseconds>(patience)))
        complain("autotune: {} ({}) would not end", left.id, left.command);
}

std::shared_ptr<Watchdog> watchdog_for(double stop_within_seconds) {
    constexpr double longest_seconds = 3600;  // nobody is there to end the watchdog itself
    const std::chrono::duration<double> patience(std::min(stop_within_seconds, longest_seconds));
    return std::make_shared<Watchdog>(std::chrono::ceil<std::chrono::milliseconds>(patience));
}

}  // namespace autotune
