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
};

struct StudyRequest {
    std::string workload{};  ///< name or label of the one that is searched; empty: the only one
    std::vector<GivenFact> facts{};  ///< by hand
};

/// A study that replays the results it was made from.
struct WrittenStudy {
    std::string yaml;
    std::filesystem::path table;         ///< `STEM.csv` beside the study
    Imported imported;                   ///< its rows, and the results that are none
    std::vector<std::string> remarks{};  ///< what was assumed
};

/// Writes the study that results tell of: the model and its checkpoints, the engines, every flag
/// with the values that were measured (one value: fixed), the workloads by their labels and
/// figures; all rows, searched exhaustively, a gain must be significant and sound. What commands do
/// not say (JSON results) comes from the settings of the server in the file, or from `facts`. What
/// is searched is the rate that most results have: of all tokens, of output tokens, of requests.
///
/// The default is the result with the fewest settings that no rule excludes. Neither file replaces
/// what is there, and both go again where the study cannot run. Throws SpaceError where nothing can
/// be replayed: no model, no engine, or several workloads and none named. Throws UsageError where
/// the study or its table is there already, IoError and ParseError.
WrittenStudy write_study(const ResultSource& source, const StudyRequest& request,
                         const std::filesystem::path& file, const Catalogue& catalogue);

}  // namespace servetune
