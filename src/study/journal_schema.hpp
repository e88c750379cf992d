// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sqlite_connection.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

// What a journal's file is made of (docs/reference/journal-format.md). "servetun" read as ASCII
// would not fit 32 bits; these four letters mark the file in its header.
inline constexpr int journal_application_id = 0x53545545;  // "STUE"
extern const char* const journal_tables;
extern const char* const journal_view;

/// What is in a journal's file and was not made by this program, or was changed: `the trigger 't'`.
/// What others put there may undo what is recorded, or have no end. Evaluates nothing of it.
std::vector<std::string> foreign_in_journal(SqliteConnection& connection);

/// Throws IoError where there is such a thing.
void check_own_journal(SqliteConnection& connection, const std::filesystem::path& file);

/// The schema version, 0 for an empty file. Throws IoError for what is no journal, or a newer one.
int journal_version(SqliteConnection& connection, const std::filesystem::path& file);
/// The same of a journal that is all ours; else throws IoError.
int checked_journal_version(SqliteConnection& connection, const std::filesystem::path& file);

/// Throws IoError where a rescued journal would replace what is no earlier one.
void check_rescued_place(const std::filesystem::path& file);

/// Whether the three tables of a journal are tables, so that reading them has an end.
bool has_real_tables(SqliteConnection& connection);

}  // namespace servetune
