// SPDX-License-Identifier: Apache-2.0
// `autotune compare --gate`: may the candidate B take the place of the baseline A?
#pragma once

#include "compared_sides.hpp"

#include "report/gate_report.hpp"
#include "study/comparison.hpp"

#include <optional>
#include <string>
#include <vector>

namespace autotune {

/// A goal on one workload, by the pairs in which both sides were measured.
struct GoalCheck {
    servetune::Goal goal;  ///< its metric is the key of the figure: `total_tokens_per_second@chat`
    std::string workload{};  ///< for people; empty: the figure is of all
    servetune::Comparison comparison;
    std::string why_none{};  ///< why it cannot be compared; empty: it can
    std::vector<double> a{}, b{};

    [[nodiscard]] bool worse() const {
        return comparison.verdict() == servetune::Comparison::Verdict::worse;
    }
    /// Whether another pair may decide it.
    [[nodiscard]] bool open() const { return why_none.empty() && comparison.open(); }
    /// Its gain with the interval.
    [[nodiscard]] std::string text() const;
};

/// The gate's checks of goals: each goal on each workload is a test of non-inferiority
/// (`Comparison::Question::not_worse`), which takes no more pairs once it is decided. B passes
/// where all pass and fails where one fails. The intervals of k checks hold together with 95 %
/// (each misses with 5 % / k, Bonferroni). So a B that loses the margin or more in any check passes
/// with at most 2.5 %, and one that loses it in none fails with at most 2.5 %.
std::vector<GoalCheck> goal_checks(const CompareArguments& arguments, const Side& a, const Side& b);

/// Whether another pair is to be measured: no check has failed, and one is not decided.
bool gate_open(const std::vector<GoalCheck>& goals);

/// The verdict when no more pairs are measured, limits included.
Ending gate_ending(const std::vector<GoalCheck>& goals, const CompareArguments& arguments,
                   const Side& a, const Side& b);

/// All that is known now. `ending`: nothing while pairs are being measured.
servetune::GateReport gate_report(const std::vector<GoalCheck>& goals,
                                  const CompareArguments& arguments, const Side& a, const Side& b,
                                  const std::optional<Ending>& ending);

/// Writes `gate.xml` and `gate.md` into the folder of a comparison. Throws IoError.
void write_gate(const std::filesystem::path& folder, const servetune::GateReport& report);

}  // namespace autotune
