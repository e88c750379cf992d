// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/sqlite_journal.hpp"
#include "sqlite_connection.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace servetune {

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
