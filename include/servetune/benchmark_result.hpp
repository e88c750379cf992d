// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace servetune {

/// A distribution of times over requests (or gaps), in seconds; what a tool did not print is
/// absent.
struct TimeSummary {
    std::optional<double> mean{}, p50{}, p90{}, p95{}, p99{}, standard_deviation{};
};

/// How well the load generator itself kept up; of other tools inference-perf says its send lag.
struct ClientHealth {
    std::optional<double> loop_lag_p50{}, loop_lag_p99{},
        loop_lag_max{};                                    ///< seconds that its event loop was late
    std::optional<double> send_lag_p50{}, send_lag_p99{};  ///< seconds from schedule to sent
    std::optional<double>
        coalesced_share{};  ///< of token chunks: came in one read with an earlier one
    std::optional<double> processor_share{};  ///< of one core, the busiest loop
    std::optional<double> connects{};         ///< connections made during the run, after warm-up
};

/// The server's own counters over the run (after minus before), where it has them.
struct ServerCounters {
    std::optional<double> input_tokens{}, output_tokens{}, prefix_hit_tokens{}, requests{},
        preemptions{};
    std::optional<double> drafted_tokens{};   ///< guessed by speculation
    std::optional<double> accepted_tokens{};  ///< guesses that were right
};

/// What a load test of any tool reported. Absent stays absent: a missing line and "N/A" are never
/// 0.
struct BenchmarkResult {
    std::optional<double> requested_requests{};
    std::optional<double> successful_requests{};
    std::optional<double> failed_requests{};
    std::optional<double> duration_seconds{};
    std::optional<double>
        maximum_concurrency{};  ///< the cap asked for, or the highest seen, as the tool means it
    std::optional<double> peak_concurrent_requests{};
    /// requests in flight on average: the time they took together / duration
    std::optional<double> mean_concurrency{};
    std::optional<double> requested_rate_per_second{};
    std::optional<double> input_tokens{};
    std::optional<double> output_tokens{};
    std::optional<double> requests_per_second{};
    std::optional<double> goodput_requests_per_second{};
    std::optional<double> input_tokens_per_second{};
    std::optional<double> output_tokens_per_second{};
    std::optional<double> peak_output_tokens_per_second{};
    std::optional<double> total_tokens_per_second{};
    TimeSummary time_to_first_token{};  ///< from sent
    /// what a user feels who came when the arrival process says: waiting included
    TimeSummary time_to_first_token_from_schedule{};
    /// (latency - time to first token) / (tokens - 1), unless the tool means otherwise
    TimeSummary time_per_output_token{};
    TimeSummary inter_token_latency{};
    TimeSummary latency{};  ///< end to end
    std::optional<double> tokens_per_chunk{};
    ClientHealth client{};
    ServerCounters server{};
};

/// Calls `visit(metric name, field)` for every figure: the one list that tables, metrics and
/// reports follow. `Result` is BenchmarkResult or const BenchmarkResult; the field is an
/// optional<double> of it.
template <class Result, class Visit>
void for_each_figure(Result& result, const Visit& visit) {
    visit("requested_requests", result.requested_requests);
    visit("successful_requests", result.successful_requests);
    visit("failed_requests", result.failed_requests);
    visit("duration_seconds", result.duration_seconds);
    visit("maximum_concurrency", result.maximum_concurrency);
    visit("peak_concurrent_requests", result.peak_concurrent_requests);
    visit("mean_concurrency", result.mean_concurrency);
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
    times("time_to_first_token_from_schedule", result.time_to_first_token_from_schedule);
    times("time_per_output_token", result.time_per_output_token);
    times("inter_token_latency", result.inter_token_latency);
    times("latency", result.latency);
    visit("tokens_per_chunk", result.tokens_per_chunk);
    visit("client_loop_lag_p50_seconds", result.client.loop_lag_p50);
    visit("client_loop_lag_p99_seconds", result.client.loop_lag_p99);
    visit("client_loop_lag_max_seconds", result.client.loop_lag_max);
    visit("client_send_lag_p50_seconds", result.client.send_lag_p50);
    visit("client_send_lag_p99_seconds", result.client.send_lag_p99);
    visit("client_coalesced_share", result.client.coalesced_share);
    visit("client_processor_share", result.client.processor_share);
    visit("client_connects", result.client.connects);
    visit("server_input_tokens", result.server.input_tokens);
    visit("server_output_tokens", result.server.output_tokens);
    visit("server_prefix_hit_tokens", result.server.prefix_hit_tokens);
    visit("server_requests", result.server.requests);
    visit("server_preemptions", result.server.preemptions);
    visit("server_drafted_tokens", result.server.drafted_tokens);
    visit("server_accepted_tokens", result.server.accepted_tokens);
}

}  // namespace servetune
