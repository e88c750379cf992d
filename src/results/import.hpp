// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/command_reader.hpp"
#include "servetune/result_file.hpp"
#include "servetune/study_file.hpp"

#include <map>
#include <string>
#include <vector>

namespace servetune {

/// A result that is no row of the study's table, and why.
struct Unplaced {
    PublishedResult result;
    std::string reason;
};

/// Results as a table of measured configurations (study/table.hpp).
struct Imported {
    std::string csv;
    std::size_t rows = 0;
    std::vector<Unplaced> unplaced{};
};

/// Turns serving arguments into the study's parameters and labels into its workloads (`printed_as`;
/// a result without a known label belongs to the only workload that has none, where the figures of
/// all such results are of one workload). Every result becomes a row, in order, but for those whose
/// arguments the study does not know, or nobody. `success_ratio` is added where it is known how
/// many requests were sent. Results of one configuration and workload are its repeats, unless they
/// differ too much (workloads.hpp): then all of them are unplaced.
Imported import_for_study(const std::vector<PublishedResult>& results, const StudyFile& study);

/// Without a study: one row a result, with its arguments and figures, and its tool, model, data set
/// and date where any has them.
std::string csv_of(const std::vector<PublishedResult>& results);

/// The parameters of a result's command under the names of a composition; why not, where that is
/// not known.
struct ReadCommand {
    Composition::Parsed parsed{};
    std::string why_not{};  ///< empty: every word is explained
};
ReadCommand read_command(const PublishedResult& result, const Composition& composition,
                         const CommandReader& commands, const std::string& model);

/// Why nothing is known of how the engine was started; empty: it is.
std::string why_no_command(const PublishedResult& result);

/// Gives `command` to each result that has none. Throws UsageError if it starts none of `engines`.
void give_command(std::vector<PublishedResult>& results, const std::string& command,
                  const std::vector<Engine>& engines);

}  // namespace servetune
