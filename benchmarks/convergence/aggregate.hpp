// SPDX-License-Identifier: Apache-2.0
// All tasks together: who is ahead, how surely, and where `bayesian` is behind.
#pragma once

#include "run.hpp"

#include <string>
#include <vector>

namespace servetune::convergence {

/// A Markdown page on the runs with the largest budget, looked at after 10, 20, 40 and 60 trials.
///
/// For each contender the mean rank over the tasks (1 is the least mean regret; equals share their
/// ranks), the share of runs whose regret is at most 5 %, and the mean regret. Each has a 90 %
/// interval: of 2000 draws of as many tasks and, in each, of as many seeds, both with replacement,
/// the same for every contender. Only tasks and seeds that every contender has run count. Then
/// every task on which `reference` is behind another by more than two standard errors of the paired
/// difference, with how much, and how many pairs were looked at. By chance alone 3.0 % of equal
/// pairs look so at 20 seeds, 3.8 % at 10, 5.8 % at 5 (Student's t beyond 2, one side). Then the
/// coverage of each model's predictive intervals, and each task by itself: failing trials, trials
/// to a good configuration, regret. One such part for each noise.
std::string aggregate_of(const std::vector<Run>& runs, const std::string& reference = "bayesian");

}  // namespace servetune::convergence
