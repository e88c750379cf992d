// SPDX-License-Identifier: Apache-2.0
// Exports of NVIDIA's GenAI-Perf (profile_export_genai_perf.json) and AIPerf (profile_export_aiperf.json): one object a
// metric, with its unit and its statistics.
#include "result_formats.hpp"

#include <array>

namespace servetune {
namespace {

using Json = nlohmann::json;

bool is_metric(const Json& value, std::string_view name) {
    const Json* metric = node_at(value, {name});
    return metric != nullptr && metric->is_object() && metric->contains("unit") && metric->contains("avg");
}

bool is_aiperf(const Json& value) {
    bool marked = is_metric(value, "benchmark_duration");
    for (const char* key : {"aiperf_version", "schema_version", "was_cancelled"})
        marked = marked || (value.is_object() && value.contains(key));
    return marked && (is_metric(value, "request_throughput") || is_metric(value, "error_request_count"));
}

bool is_genai_perf(const Json& value) { return is_metric(value, "request_throughput") && is_metric(value, "request_latency"); }

/// The power of ten that turns a metric's unit of time into seconds. The unit is what the file says, never assumed.
std::optional<int> exponent_of(const std::string& unit) {
    constexpr std::array<std::pair<std::string_view, int>, 6> units{
        {{"ns", -9}, {"us", -6}, {"ms", -3}, {"sec", 0}, {"s", 0}, {"seconds", 0}}};
    for (const auto& [name, exponent] : units)
        if (unit == name) return exponent;
    return std::nullopt;
}

std::optional<double> time_at(const Json& value, std::string_view metric, std::string_view statistic) {
    const auto exponent = exponent_of(text_at(value, {metric, "unit"}));
    return exponent ? figure_at(value, {metric, statistic}, *exponent) : std::nullopt;
}

TimeSummary aiperf_times(const Json& value, std::string_view metric) {
    const auto at = [&](std::string_view statistic) { return time_at(value, metric, statistic); };
    return {at("avg"), at("p50"), at("p90"), at("p95"), at("p99"), at("std")};
}

/// What both have.
PublishedResult read_metrics(const Json& value) {
    PublishedResult result;
    BenchmarkResult& figures = result.result;
    figures.successful_requests = figure_at(value, {"request_count", "avg"});
    figures.requests_per_second = figure_at(value, {"request_throughput", "avg"});
    figures.output_tokens_per_second = figure_at(value, {"output_token_throughput", "avg"});
    figures.latency = aiperf_times(value, "request_latency");
    // Without streaming GenAI-Perf writes the whole latency as the time to the first token.
    const Json* streaming = node_at(value, {"input_config", "endpoint", "streaming"});
    if (streaming == nullptr || *streaming != false) {
        figures.time_to_first_token = aiperf_times(value, "time_to_first_token");
        // (latency - time to first token) / (tokens - 1) for each request: what we, and vLLM, call time per output
        // token.
        figures.time_per_output_token = aiperf_times(value, "inter_token_latency");
    }
    const Json* models = node_at(value, {"input_config", "model_names"});
    if (models == nullptr) models = node_at(value, {"input_config", "endpoint", "model_names"});
    if (models != nullptr && models->is_array() && !models->empty()) result.model = text_at(models->front(), {});
    result.arguments_unknown = true;
    return result;
}

std::vector<PublishedResult> read_genai_perf(const Json& value) {
    PublishedResult result = read_metrics(value);
    result.tool = "genai-perf";
    BenchmarkResult& figures = result.result;
    figures.goodput_requests_per_second = figure_at(value, {"request_goodput", "avg"});
    figures.maximum_concurrency = figure_at(value, {"input_config", "perf_analyzer", "stimulus", "concurrency"});
    figures.requested_rate_per_second = figure_at(value, {"input_config", "perf_analyzer", "stimulus", "request_rate"});
    return {result};
}

/// The load's setting in the configuration of AIPerf 0.3 and before, or where a sweep of the newest writes it.
std::optional<double> setting(const Json& value, std::string_view name) {
    if (const auto figure = figure_at(value, {"input_config", "loadgen", name})) return figure;
    if (const auto figure = figure_at(value, {"run_info", "variation_values", "phases.profiling." + std::string(name)})) return figure;
    return figure_at(value, {"input_config", "phases", "profiling", name});
}

std::vector<PublishedResult> read_aiperf(const Json& value) {
    PublishedResult result = read_metrics(value);
    result.tool = "aiperf";
    result.tool_version = text_at(value, {"aiperf_version"});
    result.date = text_at(value, {"start_time"});
    BenchmarkResult& figures = result.result;
    figures.failed_requests = figure_at(value, {"error_request_count", "avg"});
    // The count is left out of a run without errors; two other fields then say that there were none.
    const Json* errors = node_at(value, {"error_summary"});
    const bool none = (errors != nullptr && errors->is_array() && errors->empty()) || figure_at(value, {"request_error_rate", "avg"}) == 0;
    if (!figures.failed_requests && none) figures.failed_requests = 0;
    figures.duration_seconds = time_at(value, "benchmark_duration", "avg");
    figures.maximum_concurrency = setting(value, "concurrency");
    figures.requested_rate_per_second = setting(value, "request_rate");
    figures.input_tokens = figure_at(value, {"total_isl", "avg"});
    figures.output_tokens = figure_at(value, {"total_osl", "avg"});
    figures.total_tokens_per_second = figure_at(value, {"total_token_throughput", "avg"});
    figures.goodput_requests_per_second = figure_at(value, {"goodput", "avg"});
    figures.inter_token_latency = aiperf_times(value, "inter_chunk_latency");
    if (const Json* cancelled = node_at(value, {"was_cancelled"}); cancelled != nullptr && *cancelled == true)
        result.unread["was_cancelled"] = "true";
    return {result};
}

}  // namespace

const ResultFormat genai_perf_format{"genai-perf", "request_throughput and request_latency with unit and avg", is_genai_perf,
                                     read_genai_perf};
const ResultFormat aiperf_format{"aiperf", "aiperf_version, schema_version or benchmark_duration, and request_throughput with unit and avg",
                                 is_aiperf, read_aiperf};

}  // namespace servetune
