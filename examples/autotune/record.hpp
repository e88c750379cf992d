// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"
#include "study_journal.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace autotune {

/// `export --as record`: a study, or a file with one measured result. Throws UsageError, IoError.
int export_record(const ExportArguments& arguments);

/// A study with its evidence, as a new folder. Throws UsageError, IoError.
void write_record_of(const StudySetup& setup, const fs::path& journal, const fs::path& folder);

/// What an audit of a record came to.
enum class RecordVerdict { agrees, differs, undecided };

/// `audit FOLDER`: prints what agrees and what does not, or adds an object to `json`. A record that
/// was tampered with is `differs`, whatever is broken in it. Throws nothing for what a stranger put
/// there.
RecordVerdict audit_record(const fs::path& folder, nlohmann::ordered_json* json);

}  // namespace autotune
