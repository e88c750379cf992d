// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/outcome.hpp"
#include "servetune/workload.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What a request must keep to count as good; nothing asked for: no goodput.
struct ServiceLimits {
    std::optional<double> time_to_first_token_seconds{};
    std::optional<double> time_per_output_token_seconds{};  ///< a request with one token keeps it
    std::optional<double> latency_seconds{};
};

/// What was asked of a load test.
struct Asked {
    std::size_t requests = 0;  ///< planned
    Arrival arrival{};
    ServiceLimits limits{};
    /// by index; a prompt that the server did not count has its planned length. Empty: unknown
    std::span<const PlannedRequest> plan{};
};

/// Where the true value lies with 95 % probability.
struct Interval {
    double low = 0;
    double high = 0;
};

/// The part of a closed loop in which every place was taken, and what its batches say.
struct SteadyState {
    double begin_seconds = 0;
    double end_seconds = 0;
    std::size_t batches = 0;
    /// of the batches' output tokens; far from 0: the batches are too short to be independent
    double lag_one_correlation = 0;
};

/// The figures of a run, how sure they are, and what could not be said.
struct LoadStatistics {
    BenchmarkResult result{};
    std::map<std::string, double, std::less<>>
        standard_errors{};  ///< by metric; within this run: server starts differ more
    /// by metric; of throughputs: the steady state's, which starting and draining are no part of
    std::map<std::string, Interval, std::less<>> intervals{};
    std::optional<SteadyState> steady{};
    std::vector<std::string> notes{};  ///< why something is absent or means something else here
};

/// Summarises a run. All figures but failures, duration and concurrency are of the successful
/// requests alone (docs/explanation/measuring.md).
///
/// - Times: mean, population standard deviation, percentiles by linear interpolation at q (n - 1)
///   (numpy's default). Latency ends with the last token. Time per output token is (latency - time
///   to first token) / (tokens - 1) of each request, unweighted, of those with two tokens or more
///   that came in two pieces or more: of one piece it cannot be known. Inter-token latency pools
///   the gaps between pieces of all requests. Tokens are those whose text came: not
///   `hidden_tokens`. Answers with an `unread_field` have no times.
/// - Output tokens are the server's count. Where it gives none they are estimated, and a note says
///   how: each piece is a token, unless the texts say that pieces hold several (1.5 times as many
///   tokens by `estimated_tokens` or more): then the texts count. The rule is the same for all
///   answers of a run. Input tokens that the server does not count are those planned; absent where
///   one success has neither.
/// - Peak output tokens per second: the most in any window of one second, each piece holding tokens
///   / pieces of its request; absent in runs of less than a second, and where tokens are hidden.
/// - Concurrency: requests between sent and done, failures included: its integral / duration, and
///   its largest value.
///
/// Intervals are given where requests are a sample of something that stays: an open loop of
/// constant rate, a closed loop. "All at once" has no steady state, and traces change: there
/// only repeated runs tell.
///
/// - Means of times: the standard error is s / sqrt(n_eff), with n_eff = n (1 - r) / (1 + r) for
///   lag-1 correlation r >= 0 in the order of sending (AR(1); Law, "Simulation Modeling and
///   Analysis", 4.4). The interval is symmetric on a logarithmic scale, mean exp(+- t se / mean)
///   with n_eff - 1 degrees of freedom: a mean of times is positive, and its distribution skewed to
///   the right. (Of five exponential times the exact one is 0.49 .. 3.08 times the mean, this one
///   0.29 .. 3.46, mean +- t se -0.24 .. 2.24.) Beyond a factor of ten there is a note instead. In
///   a closed loop the first `places` requests, sent together, are left out.
/// - Throughputs of a closed loop with at least 6 requests a place: batch means (Law, 9.5.3) over
///   the steady state, which begins when as many requests have ended as there are places (the first
///   ones start together and end together) and ends when the last is sent (then places stay empty).
///   Batches: 20, fewer so that each is as long as a mean latency, at least 4 (six requests a place
///   leave about that); halved while their lag-1 correlation is above 0.2 and there are 8 or more.
///   Intervals on a logarithmic scale, as above. Tokens count when they came, input tokens at the
///   first token, requests at their end.
LoadStatistics statistics_of(const LoadRun& run, const Asked& asked);

/// The output tokens of each record, successes and failures, counted as `statistics_of` counts
/// them.
std::vector<double> output_tokens_of(std::span<const RequestRecord> records);

/// Mean, population standard deviation and percentiles of what there is; all absent where there is
/// nothing.
TimeSummary summary_of(std::vector<double> values);

/// The q-quantile (0 <= q <= 1) by linear interpolation at q (n - 1); `sorted` rises and is not
/// empty.
double percentile(std::span<const double> sorted, double q);

/// How fast an answer comes to the one who reads it: 1 / the mean time per output token.
inline constexpr std::string_view tokens_per_second_per_user = "output_tokens_per_second_per_user";

/// Every figure that is there, by its metric's name, and `success_ratio`, where it is known how
/// many were asked for; of our own load tests `output_tokens_per_second_per_user` too.
Metrics metrics_of(const BenchmarkResult& result);
Metrics metrics_of(const LoadStatistics& statistics);

}  // namespace servetune
