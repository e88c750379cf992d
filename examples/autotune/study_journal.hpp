// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

#include "servetune/detail/host/process.hpp"
#include "servetune/report.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

bool has_journal(const fs::path& folder);

/// Opens a study's journal for reading. Where it was written under another definition (another
/// study, or this one before it was changed), says so on standard error: what is printed of its
/// trials goes by the study as it is now. Throws IoError.
SqliteJournal read_journal(const StudySetup& setup, const fs::path& folder);

/// Behind the reason of a run that spent its trials: of how many.
inline std::string spent_of(const Budget& budget) {
    return " (of " + std::to_string(budget.trials) + ")";
}

/// Why a study that ran ended, as far as its journal and the log of its last run tell; empty while
/// somebody runs it or there is something left to do. Only where the log says nothing the strategy
/// is asked, which may fit models.
std::string_view ended_because(const StudySetup& setup, const std::vector<Trial>& trials,
                               const fs::path& folder);

/// Whether a process holds a study's lock, by what the kernel lists: trying to take it could keep a
/// run from starting.
bool somebody_writes(const fs::path& folder);

/// Puts the studies of `--learn-from` beside the file's own knowledge. Throws UsageError for a
/// strategy that cannot learn.
void add_earlier_studies(StudyFile& file, const std::vector<fs::path>& learn_from);

/// What `--set name=value` says, with the names and values of a study's space. Throws UsageError,
/// SpaceError.
Assignment settings_of(const StudyFile& file, const SearchSpace& space,
                       const std::vector<std::string>& settings);

/// The files of `--suggest`. Throws UsageError for a strategy that takes none.
void add_suggestions(StudyFile& file, const std::vector<fs::path>& suggest);

/// The folder and its journal are the environment's, not the user's words: their troubles have an
/// exit code of their own. Nothing: it cannot be opened, and standard error says why.
std::optional<SqliteJournal> open_journal(const fs::path& folder, const StudySetup& setup,
                                          bool accept_changes);

/// Ends processes of this study that a tuner left behind when it was killed. The journal's lock is
/// ours: nobody else's trial is running.
void end_what_was_left(const StudySetup& setup);

/// Engines do not outlive this program, however it ends.
std::shared_ptr<Watchdog> watchdog_for(double stop_within_seconds);

}  // namespace autotune
