// SPDX-License-Identifier: Apache-2.0
// What the commands need that measure on this machine: the folder's journal, and the end of all
// that they start.
#pragma once

#include "servetune/detail/host/watchdog.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study_file.hpp"

#include <filesystem>
#include <memory>
#include <optional>

namespace autotune {

/// The folder and its journal are the environment's, not the user's words: their troubles have an
/// exit code of their own. Nothing: it cannot be opened, and standard error says why.
std::optional<servetune::SqliteJournal> open_journal(const std::filesystem::path& folder,
                                                     const servetune::StudySetup& setup,
                                                     bool accept_changes);

/// Ends processes of this study that a tuner left behind when it was killed. The journal's lock is
/// ours: nobody else's trial is running.
void end_what_was_left(const servetune::StudySetup& setup);

/// Engines do not outlive this program, however it ends.
std::shared_ptr<servetune::Watchdog> watchdog_for(double stop_within_seconds);

}  // namespace autotune
