// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace servetune {

/// A distribution of times over requests (or gaps), in seconds; what a tool did not print is absent.
struct TimeSummary {
    std::optional<double> mean{}, p50{}, p90{}, p95{}, p99{}, standard_deviation{};
};

/// What a load test of any tool reported. Absent stays absent: a missing line and "N/A" are never 0.
struct BenchmarkResult {
    std::optional<double> successful_requests{};
    std::optional<double> failed_requests{};
    std::optional<double> duration_seconds{};
    std::optional<double> maximum_concurrency{};  ///< the cap asked for, or the highest seen, as the tool means it
    std::optional<double> peak_concurrent_requests{};
    std::optional<double> requested_rate_per_second{};
    std::optional<double> input_tokens{};
    std::optional<double> output_tokens{};
    std::optional<double> requests_per_second{};
    std::optional<double> goodput_requests_per_second{};
    std::optional<double> input_tokens_per_second{};
    std::optional<double> output_tokens_per_second{};
    std::optional<double> peak_output_tokens_per_second{};
    std::optional<double> total_tokens_per_second{};
    TimeSummary time_to_first_token{};
    TimeSummary time_per_output_token{};  ///< (latency - time to first token) / (tokens - 1), unless the tool means otherwise
    TimeSummary inter_token_latency{};
    TimeSummary latency{};  ///< end to end
};

/// Calls `visit(metric name, field)` for every figure: the one list that tables, metrics and reports follow. `Result` is
/// BenchmarkResult or const BenchmarkResult; the field is an optional<double> of it.
template <class Result, class Visit>
void for_each_figure(Result& result, const Visit& visit) {
    visit("successful_requests", result.successful_requests);
    visit("failed_requests", result.failed_requests);
    visit("duration_seconds", result.duration_seconds);
    visit("maximum_concurrency", result.maximum_concurrency);
    visit("peak_concurrent_requests", result.peak_concurrent_requests);
    visit("requested_rate_per_second", result.requested_rate_per_second);
    visit("input_tokens", result.input_tokens);
    visit("output_tokens", result.output_tokens);
    visit("requests_per_second", result.requests_per_second);
    visit("goodput_requests_per_second", result.goodput_requests_per_second);
    visit("input_tokens_per_second", result.input_tokens_per_second);
    visit("output_tokens_per_second", result.output_tokens_per_second);
    visit("peak_output_tokens_per_second", result.peak_output_tokens_per_second);
    visit("total_tokens_per_second", result.total_tokens_per_second);
    const auto times = [&](const std::string& family, auto& summary) {
        visit(family + "_mean_seconds", summary.mean);
        visit(family + "_p50_seconds", summary.p50);
        visit(family + "_p90_seconds", summary.p90);
        visit(family + "_p95_seconds", summary.p95);
        visit(family + "_p99_seconds", summary.p99);
        visit(family + "_standard_deviation_seconds", summary.standard_deviation);
    };
    times("time_to_first_token", result.time_to_first_token);
    times("time_per_output_token", result.time_per_output_token);
    times("inter_token_latency", result.inter_token_latency);
    times("latency", result.latency);
}

}  // namespace servetune
