// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/cost_model.hpp"
#include "servetune/detail/perf/simulator.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace servetune {

/// What a quick estimate has to know of a workload's requests: their means.
struct TrafficMeans {
    std::size_t requests = 0;
    double prompt_tokens = 0;  ///< the whole prompt, what was said before included
    double repeated_tokens =
        0;  ///< of these, what an earlier request has begun with: a prefix cache has them
    double output_tokens = 0;
    double last_at_seconds = 0;  ///< of the last arrival, where the requests have times

    static TrafficMeans of(const SimulatedTraffic& traffic);
};

/// How fast a workload is served, in closed form: what `simulate` finds out step by step, in two or
/// three steps, and coarser.
struct QuickEstimate {
    double requests_per_second = 0;
    double input_tokens_per_second = 0;
    double output_tokens_per_second = 0;
    double time_to_first_token_seconds = 0;  ///< mean
    double time_per_output_token_seconds =
        0;  ///< mean, without the first; 0 where answers have one token
    double inter_token_latency_seconds = 0;  ///< mean, between two events
    double latency_seconds = 0;              ///< mean, of whole answers

    /// By the name of a metric: rates, and of times every statistic as its mean (a factor that
    /// hardly depends on the flags). Nothing for what it does not estimate.
    [[nodiscard]] std::optional<double> metric(std::string_view name) const;
};

/// The steady state of one replica, all requests alike: B places (the smallest of sequences of a
/// step, cache / tokens of a request, requests in flight), S decoding steps and w prompt steps a
/// request, N new prompt tokens, T tokens of a step, k guesses:
///
///     requests a step  r = min( B / (S + w),  T / (N + S (1 + k)) ),   decoding sequences d = r S
///     seconds a step   t = q t(d, with prompts) + (1 - q) t(d),
///                      q: the share of steps that prompts of at most T - d (1 + k) tokens are in
///     requests/s       X = replicas r / t, at most what the front ends take and (open loop) what arrives
///
/// t: CostModel::step. Below saturation of an open loop B is what Little's law (1961) says:
/// arrivals x time in the engine. A limited number of requests ends with half an answer's time in
/// which places stay empty. tests/search/knowledge_test.cpp compares it with the simulator. O(1).
/// Throws UsageError where the chance of a guess is not known.
QuickEstimate quick_estimate(const CostModel& cost, const TrafficMeans& traffic,
                             const Arrival& arrival);

}  // namespace servetune
