// SPDX-License-Identifier: Apache-2.0
// Summaries of inference-perf (summary_lifecycle_metrics.json, or one of a stage), and the tests of
// llama-bench (`-o json`, `-o jsonl`).
#include "result_formats.hpp"
#include "servetune/detail/base/number_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;

// -------------------------------------------------------------------------------------------------
// inference-perf

/// Its files of what the server counted (`*_prometheus_metrics.json`) have the times without
/// `latency`: those are not what a client measured, and no results.
bool is_inference_perf(const Json& value) {
    const Json* count = node_at(value, {"successes", "count"});
    return count != nullptr && count->is_number() && node_at(value, {"load_summary"}) != nullptr &&
           node_at(value, {"successes", "latency"}) != nullptr;
}

TimeSummary lifecycle_times(const Json& value, std::string_view name) {
    const auto at = [&](std::string_view statistic) {
        return figure_at(value, {"successes", "latency", name, statistic});
    };
    return {at("mean"), at("median"), at("p90"), at("p95"), at("p99"), std::nullopt};
}

/// All times are in seconds. Its normalized time per token (latency / tokens) has no figure of
/// ours.
std::vector<PublishedResult> read_inference_perf(const Json& value) {
    PublishedResult result;
    result.tool = "inference-perf";
    result.arguments_unknown = true;
    BenchmarkResult& figures = result.result;
    figures.successful_requests = figure_at(value, {"successes", "count"});
    figures.failed_requests = figure_at(value, {"failures", "count"});
    figures.duration_seconds = figure_at(value, {"benchmark_time_seconds"});  // since 0.5
    figures.maximum_concurrency = setting_at(value, {"load_summary", "concurrency"});
    // A stage of a fixed concurrency has its number of requests as the rate, and all of them
    // scheduled for its start.
    if (!figures.maximum_concurrency) {
        figures.requested_rate_per_second = figure_at(value, {"load_summary", "requested_rate"});
        figures.client.send_lag_p50 =
            setting_at(value, {"load_summary", "schedule_delay", "median"});
        figures.client.send_lag_p99 = setting_at(value, {"load_summary", "schedule_delay", "p99"});
    }
    figures.requests_per_second = figure_at(value, {"successes", "throughput", "requests_per_sec"});
    figures.goodput_requests_per_second =
        figure_at(value, {"successes", "goodput_metrics", "request_goodput"});
    figures.input_tokens_per_second =
        figure_at(value, {"successes", "throughput", "input_tokens_per_sec"});
    figures.output_tokens_per_second =
        figure_at(value, {"successes", "throughput", "output_tokens_per_sec"});
    figures.total_tokens_per_second =
        figure_at(value, {"successes", "throughput", "total_tokens_per_sec"});
    // Lengths are given as means; the totals are what was counted. Since 0.6 there are totals: of
    // prompts, and of answers as the server counts them. The rates are of the client's count.
    const double requests = figures.successful_requests.value_or(0);
    const auto total = [&](std::string_view name) -> std::optional<double> {
        const auto mean = figure_at(value, {"successes", name, "mean"});
        return mean && requests > 0 && std::isfinite(*mean * requests)
                   ? std::optional(*mean * requests)
                   : std::nullopt;
    };
    figures.input_tokens = figure_at(value, {"successes", "prompt_tokens", "total"});
    if (!figures.input_tokens) figures.input_tokens = total("prompt_len");
    figures.output_tokens = total("output_len");
    if (const auto counted = figure_at(value, {"successes", "output_tokens", "total"})) {
        if (!figures.output_tokens) figures.output_tokens = counted;
        else if (counted != figures.output_tokens)
            result.unread["output tokens as the server counts"] = text_of(*counted);
    }
    figures.time_to_first_token = lifecycle_times(value, "time_to_first_token");
    figures.time_per_output_token = lifecycle_times(value, "time_per_output_token");
    figures.inter_token_latency = lifecycle_times(value, "inter_token_latency");
    figures.latency = lifecycle_times(value, "request_latency");
    if (const auto mean =
            figure_at(value, {"successes", "latency", "normalized_time_per_output_token", "mean"}))
        result.unread["normalized_time_per_output_token mean"] = text_of(*mean);
    for (const std::string_view times : {"time_to_first_token", "time_per_output_token",
                                         "inter_token_latency", "request_latency"}) {
        const Json* summary = node_at(value, {"successes", "latency", times});
        if (summary == nullptr || !summary->is_object()) continue;
        constexpr std::array<std::string_view, 5> known{"mean", "median", "p90", "p95", "p99"};
        for (const auto& [statistic, number] : summary->items())
            if (number.is_number() &&
                std::find(known.begin(), known.end(), statistic) == known.end())
                result.unread[std::string(times) + " " + one_line(statistic)] =
                    text_of(number.get<double>());
    }
    for (const std::string_view key : {"send_duration", "achieved_rate"})
        if (const auto number = figure_at(value, {"load_summary", key}))
            result.unread[std::string(key)] = text_of(*number);
    for (const std::string_view key : {"goodput_percentage", "token_goodput"})
        if (const auto number = figure_at(value, {"successes", "goodput_metrics", key}))
            result.unread[std::string(key)] = text_of(*number);
    if (const Json* failed = node_at(value, {"failures", "by_label"});
        failed != nullptr && failed->is_object())
        for (const auto& [label, kind] : failed->items())
            if (const auto count = figure_at(kind, {"count"}))
                result.unread["failed: " + one_line(label)] = text_of(*count);
    return {result};
}

// -------------------------------------------------------------------------------------------------
// llama-bench

bool is_bench_test(const Json& value) {
    return value.is_object() && value.contains("avg_ts") && value.contains("n_prompt") &&
           value.contains("n_gen");
}

bool is_llama_bench(const Json& value) {
    return is_bench_test(value) ||
           (value.is_array() && !value.empty() && is_bench_test(value.front()));
}

/// One test: prompts alone, answers alone, or both, of one stream. No server and no requests: rates
/// and lengths only.
PublishedResult read_bench_test(const Json& value) {
    PublishedResult result;
    result.tool = "llama-bench";
    if (const Json* build = node_at(value, {"build_number"});
        build != nullptr && build->is_number())
        result.tool_version = "b" + scalar_text(*build).value_or("");
    result.model = text_at(value, {"model_filename"});
    if (result.model.empty()) result.model = text_at(value, {"model_type"});
    result.date = text_at(value, {"test_time"});
    BenchmarkResult& figures = result.result;
    double prompt = setting_at(value, {"n_prompt"}).value_or(0);
    const double answer = setting_at(value, {"n_gen"}).value_or(0);
    auto depth = setting_at(value, {"n_depth"});
    // ik_llama.cpp's tests of answers behind a prompt, which is not measured.
    if (const std::string test = text_at(value, {"test"});
        test.starts_with("tg") && test.find("@pp") != std::string::npos)
        depth = std::exchange(prompt, 0);
    const auto rate = figure_at(value, {"avg_ts"});
    if (prompt > 0) figures.input_tokens = prompt;
    if (answer > 0) figures.output_tokens = answer;
    figures.duration_seconds = figure_at(value, {"avg_ns"}, -9);
    if (prompt > 0 && answer > 0) figures.total_tokens_per_second = rate;
    else if (prompt > 0) figures.input_tokens_per_second = rate;
    else figures.output_tokens_per_second = rate;
    const auto number = [](double tokens) {
        return short_number_text(tokens);
    };  // a file may say 1e308
    std::string label = (prompt > 0 ? "pp" + number(prompt) : "") +
                        (prompt > 0 && answer > 0 ? "+" : "") +
                        (answer > 0 ? "tg" + number(answer) : "");
    // Behind a context of so many tokens, which are in no rate and no time.
    if (depth && *depth > 0) label += " @ d" + number(*depth);
    result.labels.push_back(label);
    result.arguments_unknown = true;
    const std::set<std::string> read{"n_prompt",       "n_gen",     "avg_ts",      "avg_ns",
                                     "model_filename", "test_time", "build_number"};
    for (const auto& [key, field] : value.items())
        if (const auto text = scalar_text(field); text && !read.contains(key))
            result.unread[one_line(key)] = *text;
    result.server_settings = result.unread;  // n_batch, n_threads, type_k, ...
    return result;
}

std::vector<PublishedResult> read_llama_bench(const Json& value) {
    if (!value.is_array()) return {read_bench_test(value)};
    std::vector<PublishedResult> results;
    for (const Json& test : value)
        if (is_bench_test(test)) results.push_back(read_bench_test(test));
    return results;
}

}  // namespace

const ResultFormat inference_perf_format{"inference-perf",
                                         "load_summary, successes.count, successes.latency",
                                         is_inference_perf, read_inference_perf};
const ResultFormat llama_bench_format{"llama-bench", "avg_ts, n_prompt, n_gen", is_llama_bench,
                                      read_llama_bench};

}  // namespace servetune
