// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/decision.hpp"
#include "servetune/detail/search/credible_interval.hpp"
#include "servetune/trial.hpp"

#include <cstddef>
#include <optional>

namespace servetune {

/// What the models expected of a configuration, by all that had been told when it was asked.
struct Expectation {
    std::optional<CredibleInterval>
        objective{};  ///< in the objective's unit, without the noise of a measurement; nothing: nothing was measured
    double deviation = 0;          ///< that of a normal with an interval as wide, in its unit
    std::optional<double> best{};  ///< the best posterior mean then; nothing: nothing had passed
    std::optional<double>
        expected_gain{};  ///< expected improvement over `best`, as a share of it; nothing as above, or of several goals
    FigureScale scale{};       ///< by which the objective was compared then
    double chance_works = 1;   ///< to give a number
    double chance_limits = 1;  ///< to keep all limits
    std::optional<double>
        seconds{};             ///< what the trial takes, start to end; nothing: not known of any
    double belief_weight = 0;  ///< of the experts that use knowledge, 0 to 1
};

/// One trial: why it was asked, what was expected and what came of it.
struct TrialExplanation {
    const Trial* trial = nullptr;
    std::size_t told_before = 0;            ///< trials that the models had learned from
    std::optional<Expectation> expected{};  ///< nothing where nothing had been told
    std::optional<double> measured{};       ///< the objective
};

}  // namespace servetune
