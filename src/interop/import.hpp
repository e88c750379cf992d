// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/command_reader.hpp"
#include "servetune/detail/interop/published.hpp"
#include "servetune/study_file.hpp"

#include <string>
#include <vector>

namespace servetune {

/// A block that is no row of the study's table, and why.
struct Unplaced {
    PublishedResult result;
    std::string reason;
};

/// The result blocks of a document as a table of measured configurations (study/table.hpp).
struct Imported {
    std::string csv;
    std::size_t rows = 0;
    std::vector<Unplaced> unplaced{};
    std::vector<std::string>
        remarks{};  ///< what its reader should know: repeats that the document names differently
};

/// Turns serving arguments into the study's parameters and labels into its workloads (`printed_as`;
/// a block without a known label belongs to the only workload that has none, where the figures of
/// all such blocks are of one workload; else it is unplaced). Every block becomes a row, in the
/// document's order, but for those whose arguments the study does not know, or nobody. A run that
/// failed is a failed row, where the study has only one workload for it. `success_ratio` is added
/// where the workload says how many requests were sent.
///
/// Results of one configuration and workload are its repeats. Those whose rates differ by more than
/// 1.25 times are none: something that the document does not say tells them apart, and all of them
/// are unplaced.
Imported import_for_study(const std::vector<PublishedResult>& results, const StudyFile& study);

/// Without a study: one row a block, with its sections, labels, arguments and figures, and its
/// tool, model, data set and date where any block has them.
std::string csv_of(const std::vector<PublishedResult>& results);

/// The parameters of a result's command under the names of a composition; why not, where that is
/// not known.
struct ReadCommand {
    Composition::Parsed parsed{};
    std::string why_not{};  ///< empty: every word is explained
};
ReadCommand read_command(const PublishedResult& result, const Composition& composition,
                         const CommandReader& commands, const std::string& model);

}  // namespace servetune
