// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kept_load_test.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The list of a record's files with their hashes: `manifest.json` in its folder.
struct RecordManifest {
    struct File {
        std::string path;  ///< within the folder, with `/`
        std::uintmax_t bytes = 0;
        std::string sha256;
    };
    std::vector<File> files{};  ///< by path; all but the manifest itself

    /// Of a study, whose journal it holds; else of one measured result.
    [[nodiscard]] bool of_study() const;
};

inline constexpr const char* manifest_name = "manifest.json";

/// Whether a folder says that it is a record.
[[nodiscard]] bool is_record(const fs::path& folder);

/// Hashes every file of the folder and writes the manifest. Throws IoError.
void write_manifest(const fs::path& folder);

/// Reads the manifest of a folder that a stranger may have made. Throws ParseError for one that is
/// none, names a file twice, or names what is not in the folder: an absolute path, `..`, characters
/// other than letters, digits and `. _ - + /`.
RecordManifest read_manifest(const fs::path& folder);

/// What in the folder is not as the manifest says, a line each: a file changed, added or removed, a
/// symbolic link, what is neither file nor folder, files that are larger than a record's (1 GiB, 4
/// GiB together). Nothing is opened before all names and sizes are right.
[[nodiscard]] std::vector<std::string> tampered_files(const fs::path& folder,
                                                      const RecordManifest& manifest);

/// Writes a study as a folder that another person can check and repeat: journal (with the study's
/// files), raw requests, logs, report, and a manifest of hashes. All texts go through
/// `secrets` and `without_token_shapes`. `output` must not be there, or be empty; after an error it
/// is as before. `stop_reason`: as all_reports takes it. Throws UsageError, IoError; also where a
/// secret is in the journal, which cannot be edited.
void write_study_record(const StudySetup& setup, std::span<const Trial> trials,
                        const fs::path& study_folder, const fs::path& output,
                        const Redactor& secrets, std::string_view stop_reason);

/// The same of one measured result in a file, which `autotune audit` reads, where there is no
/// study.
void write_result_record(const fs::path& result, const fs::path& output, const Redactor& secrets);

/// What an audit of a study's record found.
struct RecordAudit {
    std::size_t trials = 0;    ///< with figures
    std::size_t repeated = 0;  ///< of these, from requests, a table or a model
    std::size_t figures = 0;   ///< that were compared
    std::size_t requests = 0;  ///< that they are of
    std::string source{};      ///< what they were repeated from; empty: nothing that a record holds
    std::vector<std::string> wrong{};     ///< what does not agree, a line each
    std::vector<std::string> missing{};   ///< what decides and could not be repeated
    std::vector<std::string> not_made{};  ///< why other trials were not repeated
    std::string headline{};               ///< the verdict, repeated
};

/// Repeats statistics, audit, standings and verdict of a record whose hashes are right. `setup`: of
/// the record's journal.
RecordAudit audit_study_record(StudySetup& setup, std::span<const Trial> trials,
                               const fs::path& record);

}  // namespace servetune
