// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "repeated_trial.hpp"
#include "servetune/detail/base/redactor.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Writes a study as a folder that another person can check and repeat: journal, study, raw
/// requests, logs, report, versions, `README.txt`, and a manifest of hashes. All texts go through
/// `secrets` and `without_token_shapes`. `output` must not be there, or be empty; after an error it
/// is as before. `stop_reason`: as all_reports takes it. Throws UsageError, IoError; also where a
/// secret is in the journal, which cannot be edited.
void write_study_record(const StudySetup& setup, std::span<const Trial> trials,
                        const std::filesystem::path& study_folder,
                        const std::filesystem::path& output, const Redactor& secrets,
                        std::string_view stop_reason);

/// The same of one measured result in a file, which `autotune audit` reads, where there is no
/// study.
void write_result_record(const std::filesystem::path& result, const std::filesystem::path& output,
                         const Redactor& secrets);

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
                               const std::filesystem::path& record);

/// The same of the record of a measured result: whether the manifest says what it says.
RecordAudit audit_result_record(const std::filesystem::path& record);

}  // namespace servetune
