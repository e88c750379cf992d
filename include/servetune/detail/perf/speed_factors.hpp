// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/engine_traits.hpp"

#include <string>

namespace servetune {

/// How a machine's speed differs from what the traits say: one factor for each part of the cost
/// model, 1 as shipped.
struct SpeedFactors {
    double compute =
        1;  ///< of the FLOP/s reached, in products with weights and in attention over prompts
    double bandwidth = 1;  ///< of the memory bandwidth reached, for weights and for the cache
    double overhead =
        1;  ///< of the host's seconds: a step, a sequence, a launch, a request, a streamed event

    /// `compute x 1.9, bandwidth x 1.02, overhead x 0.61`.
    [[nodiscard]] std::string text() const;

    friend bool operator==(const SpeedFactors&, const SpeedFactors&) = default;
};

/// The traits with these factors. Shares of a peak stay within 1 % and 100 %.
[[nodiscard]] EngineTraits scaled(EngineTraits traits, const SpeedFactors& factors);

}  // namespace servetune
