// SPDX-License-Identifier: Apache-2.0
// Exports of NVIDIA's GenAI-Perf (profile_export_genai_perf.json) and AIPerf
// (profile_export_aiperf.json): one object a metric, with its unit and its statistics.
#include "aiperf_metrics.hpp"
#include "result_formats.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <array>

namespace servetune {
namespace {

using Json = nlohmann::json;

bool is_aiperf(const Json& value) {
    bool marked = is_metric(value, "benchmark_duration");
    for (const char* key : {"aiperf_version", "schema_version", "was_cancelled"})
        marked = marked || (value.is_object() && value.contains(key));
    return marked &&
           (is_metric(value, "request_throughput") || is_metric(value, "error_request_count"));
}

bool is_genai_perf(const Json& value) {
    return is_metric(value, "request_throughput") && is_metric(value, "request_latency");
}

std::optional<double> time_at(const Json& value, std::string_view metric,
                              std::string_view statistic) {
    const auto exponent = time_exponent_of(text_at(value, {metric, "unit"}));
    return exponent ? figure_at(value, {metric, statistic}, *exponent) : std::nullopt;
}

TimeSummary aiperf_times(const Json& value, std::string_view metric) {
    const auto at = [&](std::string_view statistic) { return time_at(value, metric, statistic); };
    return {at("avg"), at("p50"), at("p90"), at("p95"), at("p99"), at("std")};
}

/// Metrics that figures are made of, or that say the same again.
constexpr std::array<std::string_view, 19> metrics_with_figures{"request_count",
                                                                "request_throughput",
                                                                "output_token_throughput",
                                                                "request_latency",
                                                                "time_to_first_token",
                                                                "inter_token_latency",
                                                                "inter_chunk_latency",
                                                                "request_goodput",
                                                                "goodput",
                                                                "error_request_count",
                                                                "request_error_rate",
                                                                "completed_request_count",
                                                                "benchmark_duration",
                                                                "min_request_timestamp",
                                                                "max_response_timestamp",
                                                                "total_isl",
                                                                "total_osl",
                                                                "total_token_throughput",
                                                                "effective_concurrency"};

/// The average of every other metric, with its unit.
void list_other_metrics(const Json& value, PublishedResult& result) {
    if (!value.is_object()) return;
    for (const auto& [name, metric] : value.items()) {
        if (std::find(metrics_with_figures.begin(), metrics_with_figures.end(), name) !=
                metrics_with_figures.end() ||
            !is_metric(value, name))
            continue;
        if (const auto average = scalar_text(metric["avg"])) {
            const std::string unit = text_at(metric, {"unit"});
            result.unread[one_line(name)] = *average + (unit.empty() ? "" : " " + unit);
        }
    }
}

/// What both have.
PublishedResult read_common(const Json& value) {
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
        // (latency - time to first token) / (tokens - 1) for each request: what we, and vLLM, call
        // time per output token.
        figures.time_per_output_token = aiperf_times(value, "inter_token_latency");
    }
    // A list of names, since AIPerf's configuration of 2026 a list of objects.
    const Json* models = node_at(value, {"input_config", "model_names"});
    if (models == nullptr) models = node_at(value, {"input_config", "endpoint", "model_names"});
    if (models == nullptr) models = node_at(value, {"input_config", "models", "items"});
    if (models != nullptr && models->is_array() && !models->empty()) {
        result.model = text_at(models->front(), {});
        if (result.model.empty()) result.model = text_at(models->front(), {"name"});
    }
    result.arguments_unknown = true;
    list_other_metrics(value, result);
    return result;
}

/// The load that was measured in the configuration of 2026: the only phase of the list that is no
/// warm-up; nullptr when there are several, as then none of them is the whole run's.
const Json* measured_phase(const Json& value) {
    const Json* phases = node_at(value, {"input_config", "phases"});
    if (phases == nullptr || !phases->is_array()) return nullptr;
    const Json* found = nullptr;
    for (const Json& phase : *phases) {
        if (text_at(phase, {"kind"}) == "warmup" || text_at(phase, {"name"}) == "warmup") continue;
        if (found != nullptr) return nullptr;
        found = &phase;
    }
    return found;
}

/// The load's setting: where a sweep writes it, then in the configuration, of 2025 (`loadgen`) or
/// 2026 (`phases`).
std::optional<double> setting(const Json& value, std::string_view name,
                              std::string_view name_in_phase) {
    const std::string path = "phases.profiling." + std::string(name_in_phase);
    if (const auto figure = setting_at(value, {"run_info", "variation_values", path}))
        return figure;
    if (const auto figure = setting_at(value, {"input_config", "loadgen", name})) return figure;
    const Json* phase = measured_phase(value);
    return phase == nullptr ? std::nullopt : setting_at(*phase, {name_in_phase});
}

/// The newest schema whose changes are known: 1.0 to 1.5 add fields, and rename only those of GPUs.
void note_newer_schema(const Json& value, PublishedResult& result) {
    const std::string schema = text_at(value, {"schema_version"});
    const auto number = real_of(schema);
    if (number && *number > 1.5)
        result.unread["schema_version"] = schema + ": newer than 1.5, read as 1.5";
}

std::vector<PublishedResult> read_aiperf(const Json& value) { return {read_aiperf_metrics(value)}; }
std::vector<PublishedResult> read_genai_perf(const Json& value) {
    return {read_genai_perf_metrics(value)};
}

}  // namespace

bool is_metric(const Json& value, std::string_view name) {
    const Json* metric = node_at(value, {name});
    return metric != nullptr && metric->is_object() && metric->contains("unit") &&
           metric->contains("avg");
}

PublishedResult read_genai_perf_metrics(const Json& value) {
    PublishedResult result = read_common(value);
    result.tool = "genai-perf";
    BenchmarkResult& figures = result.result;
    figures.goodput_requests_per_second =
        setting_at(value, {"request_goodput", "avg"});  // -1: without bounds on times
    figures.maximum_concurrency =
        figure_at(value, {"input_config", "perf_analyzer", "stimulus", "concurrency"});
    figures.requested_rate_per_second =
        figure_at(value, {"input_config", "perf_analyzer", "stimulus", "request_rate"});
    return result;
}

PublishedResult read_aiperf_metrics(const Json& value) {
    PublishedResult result = read_common(value);
    result.tool = "aiperf";
    result.tool_version = text_at(value, {"aiperf_version"});
    result.date = text_at(value, {"start_time"});
    BenchmarkResult& figures = result.result;
    figures.failed_requests = figure_at(value, {"error_request_count", "avg"});
    // The count is left out of a run without errors; two other fields then say that there were
    // none. A run without successes has no count of them either.
    const Json* errors = node_at(value, {"error_summary"});
    const auto rate = figure_at(value, {"request_error_rate", "avg"});
    const bool none = (errors != nullptr && errors->is_array() && errors->empty()) || rate == 0;
    if (!figures.failed_requests && none) figures.failed_requests = 0;
    if (!figures.successful_requests && rate == 100) figures.successful_requests = 0;
    figures.duration_seconds = time_at(value, "benchmark_duration", "avg");
    figures.maximum_concurrency = setting(value, "concurrency", "concurrency");
    figures.requested_rate_per_second = setting(value, "request_rate", "rate");
    // In flight over the whole window, failed requests too.
    figures.mean_concurrency = figure_at(value, {"effective_concurrency", "avg"});
    figures.peak_concurrent_requests = figure_at(value, {"effective_concurrency", "max"});
    figures.input_tokens = figure_at(value, {"total_isl", "avg"});
    figures.output_tokens = figure_at(value, {"total_osl", "avg"});
    figures.total_tokens_per_second = figure_at(value, {"total_token_throughput", "avg"});
    figures.goodput_requests_per_second = figure_at(value, {"goodput", "avg"});
    figures.inter_token_latency = aiperf_times(value, "inter_chunk_latency");
    if (const Json* cancelled = node_at(value, {"was_cancelled"});
        cancelled != nullptr && *cancelled == true)
        result.unread["was_cancelled"] = "true";
    note_newer_schema(value, result);
    return result;
}

const ResultFormat genai_perf_format{"genai-perf",
                                     "request_throughput and request_latency with unit and avg",
                                     is_genai_perf, read_genai_perf};
const ResultFormat aiperf_format{"aiperf",
                                 "aiperf_version, schema_version or benchmark_duration, and "
                                 "request_throughput with unit and avg",
                                 is_aiperf, read_aiperf};

}  // namespace servetune
