// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/decision.hpp"
#include "servetune/detail/trial/drift.hpp"
#include "servetune/detail/trial/other_work.hpp"
#include "servetune/objective.hpp"
#include "servetune/trial.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// One goal in the usable measurements of one configuration, by trial id.
struct GoalFigures {
    /// As they are judged (`FigureScale`): without the machine's drift where that is real, and no
    /// more than the share that equal work leaves of them.
    std::vector<double> values{};
    std::vector<double> measured{};  ///< the same with the drift
    std::vector<double> places{};    ///< the trials' ids
    std::vector<double> runs{};      ///< behind each value; most often 1
    Spread within{};                 ///< how the runs behind the values spread
    Estimate estimate{};             ///< meaningful when there are values
    double equal_work = 1;           ///< what equal work leaves of a gain (`share_of_equal_work`)

    [[nodiscard]] double total_runs() const {
        return std::accumulate(runs.begin(), runs.end(), 0.0);
    }
};

/// Why a configuration cannot win.
enum class Refusal {
    none,
    failed,       ///< a failure that is its own
    unusable,     ///< a result without a goal's figure, or one that cannot be compared
    limit,        ///< a limit is broken, or could not be judged
    unsound,      ///< the audit refuses its measurements
    not_its_own,  ///< only failures that are not its own
    slower,       ///< its load test was ended early
    guard,        ///< worse on a workload than `Decision::never_worse_than` allows
    other_work    ///< its requests were others than the default's
};

/// What the told trials of one configuration say together.
struct Standing {
    Configuration configuration;
    std::vector<const Trial*> trials;  ///< told and pending, by id
    std::vector<GoalFigures> goals{};  ///< one for each goal of the objective, in its order
    Refusal refusal = Refusal::none;
    std::string refused{};  ///< the refusal in words; empty: it can win
    std::vector<OtherWork>
        other_work{};  ///< where its requests had other lengths than the default's, beyond noise
    /// ln of what the workload that loses most keeps of the default's figure, over what
    /// `Decision::never_worse_than` allows: above 0 it is allowed. Nothing: no such rule, or
    /// nothing to compare.
    std::optional<double> guard_margin{};

    [[nodiscard]] bool told() const {
        return std::any_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    [[nodiscard]] bool pending() const {
        return !std::all_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    /// Usable measurements; each has a value of every goal.
    [[nodiscard]] std::size_t measured() const { return leading().values.size(); }
    [[nodiscard]] const GoalFigures& leading() const { return goals.front(); }
    /// Of the leading goal.
    [[nodiscard]] const Estimate& estimate() const { return leading().estimate; }
    /// May win: measured, no failure, every limit known to hold, not unsound where the audit is
    /// enforced.
    [[nodiscard]] bool passes() const { return measured() > 0 && refusal == Refusal::none; }
    void refuse(Refusal reason, std::string words) {
        refusal = reason;
        refused = std::move(words);
    }
};

}  // namespace servetune
