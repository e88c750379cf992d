// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <filesystem>
#include <span>

namespace servetune {

/// Writes the trials of a search as a storage of Optuna 3: an SQLite file that `optuna.load_study`
/// opens, with the study's name, directions, distributions, values, and every metric as a user
/// attribute.
///
/// A trial is COMPLETE when its configuration may win, PRUNED when it was measured and refused (a
/// limit, the audit), FAIL, RUNNING or WAITING. Numbers count the trials of the search; the user
/// attribute `trial` is the journal's number. `Unset` is the text `engine`.
///
/// Throws UsageError where the file is there already, IoError where it cannot be written.
void write_optuna_storage(const StudySetup& setup, std::span<const Trial> trials,
                          const std::filesystem::path& file);

}  // namespace servetune
