// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/dataset.hpp"
#include "servetune/detail/load/load_generator.hpp"

#include <optional>
#include <string>

namespace servetune {

/// A rate that a load test must be able to reach, or there is no use in going on with it.
struct RateToReach {
    /// `output_tokens_per_second`, `total_...`, `input_...` or `requests_per_second`; others end
    /// nothing
    std::string metric{};
    double least = 0;
};

/// When it is certain that the rate will not be reached, in seconds from the start: no more than
/// what was planned can be done, so that the figure at the end is at most the plan's work / the
/// time so far. This needs no assumption on noise or on how the rest goes. Nothing for other
/// metrics, and for a plan whose work is not known: input tokens count only where their lengths are
/// exact.
[[nodiscard]] std::optional<double> lost_after_seconds(const RateToReach& wanted, const Plan& plan);

/// A load test that was ended because it was lost.
struct EarlyStop {
    double value = 0;  ///< of the metric: the work done until then / the time until then
    double standard_error =
        0;  ///< half of what was left to do, as a share of the value: nobody saw how that goes
    double seconds = 0;        ///< until it was ended
    double saved_seconds = 0;  ///< what the rest would have taken at this pace
};
[[nodiscard]] EarlyStop given_up(const RateToReach& wanted, const Plan& plan, const LoadRun& run);

}  // namespace servetune
