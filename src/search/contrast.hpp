// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pending_aware_model.hpp"
#include "servetune/detail/search/credible_interval.hpp"

#include <cstddef>
#include <vector>

namespace servetune {

/// Sums of ln(objective) over configurations, each with weights that add to 0: differences that
/// other configurations do not enter.
struct Contrasts {
    std::vector<EncodedPoint> points{};
    std::vector<std::vector<PriorBelief>> beliefs{};  ///< of each point
    Eigen::MatrixXd weights{};                        ///< points x contrasts
};

/// The posterior of each contrast by the model of the objective, standardised (more is better),
/// without noise: exact for each expert, w'm and w'Cw with C the joint posterior covariance, and
/// mixed. O(experts (points^2 + n points)).
[[nodiscard]] std::vector<Prediction> posterior_of(const PendingAwareModel& model,
                                                   const LevelGeometry& geometry,
                                                   const Contrasts& contrasts);

/// A difference of standardised logarithms as a gain: 0.02 is 2 % better. It is one of `together`
/// intervals that hold with 95 % all at once (Bonferroni): of sixteen that hold with 95 % each, one
/// excludes 0 in half of the studies where nothing differs.
[[nodiscard]] CredibleInterval as_gain(const PendingAwareModel& model, const Prediction& difference,
                                       std::size_t together);

}  // namespace servetune
