// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gaussian_process.hpp"

#include <cmath>

namespace servetune {

/// What decides about one configuration.
struct CandidateScore {
    /// ln of what measuring it is expected to gain over the incumbent, of several goals what the
    /// front is; where nothing passes 0.3 ln of the standard deviation: to learn.
    double log_improvement = 0;
    double log_works = 0;    ///< ln P(it gives a number)
    double log_limits = 0;   ///< sum over the limits of ln P(kept)
    Prediction objective{};  ///< of the leading goal, standardised, more is better

    [[nodiscard]] double total() const { return log_improvement + log_works + log_limits; }
};

/// In place of the gain where nothing passes yet: what may pass comes first, then what is least
/// known.
inline double log_worth_learning(double variance) {
    constexpr double share = 0.3;
    return share * 0.5 * std::log(variance);
}

}  // namespace servetune
