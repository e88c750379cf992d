// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace servetune {

/// What the GPUs of an engine draw together at one moment.
struct PowerSample {
    double at_seconds = 0;  ///< CLOCK_MONOTONIC
    double watts = 0;
};

/// What they drew during a load test.
struct PowerUse {
    double mean_watts = 0;            ///< over the time of the load test
    double peak_watts = 0;            ///< the largest sample
    double standard_error_watts = 0;  ///< of the mean, from sampling alone
    std::size_t samples = 0;
};

/// The power between two moments, from the samples between them; or why it is not known, for a
/// person.
///
/// The mean is weighted by time: a sample stands for the time that is nearer to it than to its
/// neighbours, at most 0.75 of the median distance of samples on either side, so that a gap is
/// filled by nobody. Where less than 80 % of the time is covered, or there are fewer than five
/// samples, there is no figure: four have no spread to speak of. Its standard error is s /
/// sqrt(n_eff), n_eff = n (1 - r) / (1 + r) for lag-1 correlation r >= 0 (AR(1); Law, "Simulation
/// Modeling and Analysis", 4.4), as of means of times. `samples` rise in time.
[[nodiscard]] std::variant<PowerUse, std::string> power_between(
    std::span<const PowerSample> samples, double begin_seconds, double end_seconds);

/// Adds `power_mean_watts` and `power_peak_watts` to the figures of one load test, and where it has
/// the rates also `joules_per_output_token` and `joules_per_total_token`: mean power / tokens a
/// second. Their relative standard errors are those of power and rate, taken to be independent.
void add_power(Metrics& metrics, const PowerUse& power);

/// The names of what it can add.
[[nodiscard]] std::vector<std::string> power_metrics();
/// Whether it is one of these, of a workload too (`name@workload`).
[[nodiscard]] bool is_power_metric(std::string_view metric);

}  // namespace servetune
