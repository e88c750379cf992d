// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "predict/fit.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <span>

namespace servetune {

/// Seconds that a trial of this configuration is expected to take, start to stop: of a study that
/// starts engines or loads a server that runs. Without a history by the cost model alone. With one
/// the model is fitted to it (`factors_of`), its load tests last as long as measured ones did in
/// the median, and start, warm-up and stop take what they took. Nothing: the engine would not start
/// on paper, or nobody loads a server. Throws Error where the cost model does not know the chip or
/// the model (`simulated`).
[[nodiscard]] std::optional<double> expected_trial_seconds(const StudySetup& setup,
                                                           const Configuration& configuration,
                                                           std::span<const Trial> history = {});

/// Rows of a table of measured configurations, ready to be fitted, by engine.
struct FitTable {
    std::map<std::string, std::vector<FitRow>> rows;
    /// `file:line: why`: failed, unsound, a model whose bytes are not known, an unknown workload
    std::vector<std::string> left_out;
};

/// Reads a table as `autotune import` or `autotune export` writes it: the command of a row from its
/// column `arguments`, else from its parameters; its workload by the study's names (or what
/// documents call them: columns `workload`, `label`). A row without one is of the study's only
/// workload, or has the figures of each as `name@workload`. Requests and lengths are those that the
/// row itself reports; where the study's data set has mixed lengths they are spread as in
/// workloads/chat_lengths.csv. Rows that the audit calls unsound are left out. `only`: a workload's
/// name; empty: all.
FitTable read_fit_table(const std::filesystem::path& file, const StudyFile& study,
                        const std::string& only = "");

/// The traits file that ships for `fit.traits.engine`, with the fitted figures in their places and
/// `source` as what says where they are from.
std::string fitted_traits_file(const std::filesystem::path& shipped, const Fit& fit,
                               const std::string& source);

}  // namespace servetune
