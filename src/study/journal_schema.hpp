// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/sqlite_journal.hpp"
#include "sqlite_connection.hpp"

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

/// path -> text (StudySetup::definition), name -> text of an environment, or the texts of a study.
using Definition = std::map<std::string, std::string>;

Fingerprint fingerprint_of_definition(const Definition& definition);

/// Whether a path of a definition is about this run and this machine only: another text there is no
/// change of the study.
bool is_never_compared(const std::string& path);

/// A line each after a line break; empty: nothing that counts differs.
std::string changes_between(const Definition& before, const Definition& after);

/// The definition of the last event, or the first one when there is no event: the one the study
/// last ran under.
std::string last_fingerprint(SqliteConnection& connection);
Definition definition_named(SqliteConnection& connection, const std::string& fingerprint);

/// What the study in a journal last ran under, and its texts. Throws IoError.
std::pair<Definition, Definition> last_definitions(const std::filesystem::path& file);

}  // namespace servetune
