// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/standings.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

namespace servetune {

/// What a configuration that is measured for the first time has to beat. Nothing for all others: a
/// replicate, the default, a workload that is only reported, a study of several goals or of the
/// workload that gains least, and as long as nothing passes.
std::optional<ToBeat> to_beat(const Problem& problem, std::span<const Trial> trials,
                              const Trial& trial);

/// What an evaluator is told of a trial. `trials`: all, this one among them.
inline EvaluationContext context_of(const Problem& problem, std::span<const Trial> trials,
                                    const Trial& trial, std::stop_token stop) {
    const bool again = std::any_of(trials.begin(), trials.end(), [&](const Trial& other) {
        return other.id < trial.id && other.workload == trial.workload &&
               other.configuration == trial.configuration;
    });
    return {trial.id, trial.seed, trial.workload, std::move(stop), to_beat(problem, trials, trial),
            again};
}

}  // namespace servetune
