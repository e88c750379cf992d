// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/objective.hpp"
#include "servetune/result_file.hpp"
#include "study/comparison.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A figure under one load, by the runs of both sides.
struct ComparedFigure {
    std::string load{};    ///< `64 in flight`; empty: the files do not say
    std::string metric{};  ///< without its workload
    std::vector<double> a{}, b{};
    Gain gain{};  ///< of B over A, as a share; above 0: B is better
    Comparison::Verdict verdict = Comparison::Verdict::undecided;
    /// So many runs of each side would tell, if they are as noisy as these; nothing: nobody knows,
    /// or it is decided.
    std::optional<std::size_t> runs_needed{};
};

struct ComparedRuns {
    std::vector<ComparedFigure> figures{};  ///< the goal's first, load after load
    Comparison::Verdict verdict = Comparison::Verdict::undecided;  ///< by the goal's figures alone
    std::vector<std::string> remarks{};  ///< what was left out, and what nobody can know
};

/// Whether B is better than A, by runs that are over: of each load an interval of
/// ln(mean of B / mean of A) by Welch's t test of the logarithms, whose degrees of freedom are
/// rounded down; where one side has a single run, by the spread of the other. The intervals of k
/// loads hold together with 95 % (each misses with 5 % / k, Bonferroni): B is better where it is on
/// one load and on none worse or undecided.
///
/// Runs that the audit calls unsound do not count. A goal without a metric is the first of
/// `leading_rates` that both sides have. Throws UsageError where no load was measured on both
/// sides, where models differ, or where no figure is the goal's.
[[nodiscard]] ComparedRuns compare_runs(const std::vector<PublishedResult>& a,
                                        const std::vector<PublishedResult>& b, Goal goal,
                                        double margin);

}  // namespace servetune
