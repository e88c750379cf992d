// SPDX-License-Identifier: Apache-2.0
// Runs as tables for people and as one picture a task.
#pragma once

#include "run.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune::convergence {

/// The Kaplan-Meier median of the trial of arrival: runs that never arrived are right-censored at
/// their budget. Nothing: fewer than half arrive.
std::optional<std::size_t> median_arrival(const std::vector<Run>& runs);

/// One Markdown table for each (task, noise, budget), with the paired differences to `against`, or
/// without it to the best contender that is not `bayesian...`: the one with the lowest mean regret
/// of the best mean after the last trial.
std::string summary_of(const std::vector<Run>& runs, const std::string& against = "");

/// Median regret of the best mean over the trials, one line a contender: the largest budget of this
/// task at this noise.
std::string svg_of(const std::vector<Run>& runs, const std::string& task, double noise_cv);

}  // namespace servetune::convergence
