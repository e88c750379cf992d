// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/results/published.hpp"
#include "servetune/study_file/study_file.hpp"

#include <string>
#include <vector>

namespace servetune {

/// A block that is no row of the study's table, and why.
struct Unplaced {
    PublishedResult result;
    std::string reason;
};

/// The result blocks of a document as a table of measured configurations (io/table.hpp).
struct Imported {
    std::string csv;
    std::size_t rows = 0;
    std::vector<Unplaced> unplaced{};
};

/// Turns serving arguments into the study's parameters and labels into its workloads (`printed_as`; a block without a
/// known label belongs to the only workload that has none, where the figures of all such blocks are of one workload;
/// else it is unplaced). Every block becomes a row, in the document's order, but for those whose arguments the study
/// does not know, or nobody. `success_ratio` is added where the workload says how many requests were sent and the
/// arguments are printed, not derived.
Imported import_for_study(const std::vector<PublishedResult>& results, const StudyFile& study);

/// Without a study: one row a block, with its sections, labels, arguments and figures, and its tool, model, data set
/// and date where any block has them.
std::string csv_of(const std::vector<PublishedResult>& results);

/// What starts the commands of these engines: `vllm serve`, `python3 -m sglang.launch_server`.
std::vector<std::string> launchers_of(const std::vector<Engine>& engines);

}  // namespace servetune
