// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import.hpp"
#include "servetune/catalogue.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

/// What a person says of results, where their files do not: a fact (`model`, `hardware`, `engine`,
/// `version`) or a parameter of the engine, of all results or of those of one file.
struct GivenFact {
    std::string file{};  ///< as it was named, or its last part; empty: all
    std::string name;
    std::string value;

    /// `[FILE:]NAME=VALUE`. Throws SpaceError.
    static GivenFact parse(const std::string& text);
};

/// Results and where they come from.
struct ResultSource {
    std::vector<PublishedResult> results;  ///< numbered over all files
    std::vector<std::string> files;        ///< of each result
    std::vector<std::string>
        texts;  ///< of the files, where they are documents: hardware and versions stand there
};

struct StudyRequest {
    std::string workload{};  ///< name or label of the one that is searched; empty: the only one
    std::vector<GivenFact> facts{};  ///< by hand
};

/// A study that replays the results it was made from.
struct WrittenStudy {
    std::string yaml;
    std::filesystem::path table;         ///< `STEM.csv` beside the study
    Imported imported;                   ///< its rows, and the blocks that are none
    std::vector<std::string> remarks{};  ///< what was assumed
};

/// Writes the study that results tell of: the model and its checkpoints, the engines, every flag
/// with the values that were measured (one value: fixed), the workloads by their labels and
/// figures; all rows, searched exhaustively, a gain must be significant and sound. What commands do
/// not say (JSON results) comes from the settings of the server in the file, or from `facts`.
///
/// The file is written, read back, and the table written beside it, so that what is there replays;
/// where that fails there is no file. Neither replaces what is there. What is searched is the rate
/// that most results have: of all tokens, of output tokens, of requests. Where the engine's own
/// default was not measured, the first result is the default. A parameter that the engine sets by
/// itself (a rule `... or a == b`) is added to the commands that leave it out; a remark says so,
/// and which measured results a rule still excludes from the search.
///
/// Throws SpaceError where nothing can be replayed: no model, no engine, or several workloads and
/// none named; the message lists them. Throws UsageError where the study or its table is there
/// already, IoError and ParseError.
WrittenStudy write_study(const ResultSource& source, const StudyRequest& request,
                         const std::filesystem::path& file, const Catalogue& catalogue);

}  // namespace servetune
