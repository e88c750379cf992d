// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/evaluator.hpp"
#include "servetune/strategy.hpp"

namespace servetune {

/// What a configuration that is measured for the first time has to beat. Nothing for all others: a
/// replicate, the default, a workload that is only reported, a study of several goals or of the
/// workload that gains least, and as long as nothing passes.
std::optional<Incumbent> to_beat(const Problem& problem, std::span<const Trial> trials,
                                 const Trial& trial);

/// What an evaluator is told of a trial. `trials`: all, this one among them.
EvaluationContext context_of(const Problem& problem, std::span<const Trial> trials,
                             const Trial& trial, std::stop_token stop);

/// Whether the default configuration is to be measured again now, so that a machine that drifts is
/// seen (`Drift`): once so many trials of others have followed its last one (0: never). Not where
/// it fails, or where nothing changes when it is measured again. The confirmation measures it at
/// least three times more.
bool default_again_is_due(const Problem& problem, std::span<const Trial> history,
                          std::size_t every);

/// Whether a fall under stress speaks of its configuration: not where the usual one falls too.
bool falls_count(std::span<const Trial> trials, const Configuration& usual);

/// Which metric of a goal or a limit a measurement lacks that none before it had either, in words
/// that name what it has; empty: none. A study would run to its end and nothing in it could win.
/// Not asked of a table's fixed rows, of what is only reported, and of what the audit refuses.
std::string missing_metric(const Problem& problem, std::span<const Trial> trials,
                           const Trial& trial, const Outcome& outcome);

}  // namespace servetune
