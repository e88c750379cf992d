// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/simulate_evaluator.hpp"
#include "servetune/strategy.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace servetune {

/// A configuration and what the simulator says of it.
struct PredictedTrial {
    Configuration configuration{};
    Outcome outcome{};
};

/// Each configuration's outcome over the objective's workloads, in their order; on `threads`
/// threads, the answer does not depend on how many.
std::vector<PredictedTrial> predict(const SimulateEvaluator& evaluator,
                                    std::span<const Configuration> configurations,
                                    std::size_t threads = 1, const std::stop_token& stop = {});

/// Whether a prediction may be recommended: it served, and no limit of the objective is broken.
bool passes(const PredictedTrial& prediction, const Objective& objective);

struct PredictionSearch {
    std::size_t configurations =
        500;  ///< drawn evenly from the space, beside the default; about 10 ms each and thread
    std::size_t climbers =
        3;  ///< the best of them from which all neighbours are tried until none is better
    std::size_t most = 3000;  ///< simulated in all
    std::uint64_t seed = 1;
    std::size_t threads = 1;
};

/// Looks for the configurations of which the simulator expects most: the default first, then as
/// drawn, then the climbs, each configuration once. What is found is a guess about a guess; measure
/// it.
std::vector<PredictedTrial> search_predictions(const SimulateEvaluator& evaluator,
                                               const Problem& problem,
                                               const PredictionSearch& search = {},
                                               const std::stop_token& stop = {});

/// Those that pass, best first; ties by fingerprint.
std::vector<const PredictedTrial*> ranked(std::span<const PredictedTrial> predictions,
                                          const Objective& objective);

/// The `top` best of `best` (as `ranked` gives them), one of those with the same figures to six
/// digits, each with the parameters that change none of the objective's figures at their defaults.
std::vector<PredictedTrial> distinct(const SimulateEvaluator& evaluator, const Problem& problem,
                                     const std::vector<const PredictedTrial*>& best,
                                     std::size_t top, const std::stop_token& stop = {});

}  // namespace servetune
