// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/standings.hpp"
#include "servetune/strategy.hpp"

#include <cstddef>
#include <vector>

namespace servetune {

/// Knowledge of other measurements that this study's own have refuted.
struct RejectedPrior {
    std::size_t source = 0;  ///< its place in the beliefs
    std::size_t trials = 0;  ///< that refuted it
    double promised = 0;     ///< their mean gain over the default by this source, as ln
    double measured = 0;     ///< the same as measured
};

/// Sources that were measured elsewhere (they have winners) and whose promises do not hold here:
/// what they believed to be better than the default gained less than half as much in logarithms,
/// surely (two standard errors), over at least two configurations. A failure counts as the promise
/// turned round. The regression on a belief shrinks it only, and would go on to ask beside the
/// winners of a chip of another maker.
[[nodiscard]] std::vector<RejectedPrior> rejected_priors(const Beliefs& beliefs,
                                                         const Problem& problem,
                                                         const Standings& standings);

}  // namespace servetune
