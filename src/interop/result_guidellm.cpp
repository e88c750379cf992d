// SPDX-License-Identifier: Apache-2.0
// Reports of GuideLLM 0.2 to 0.7 (one element of `benchmarks` a rate), and benchmarks of GPUStack,
// whose runner is GuideLLM: its server wraps the report and adds flat figures.
#include "result_formats.hpp"
#include "servetune/value.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace servetune {
namespace {

using Json = nlohmann::json;

const Json* first_present(std::initializer_list<const Json*> candidates) {
    for (const Json* candidate : candidates)
        if (candidate != nullptr && !candidate->is_null()) return candidate;
    return nullptr;
}

// -------------------------------------------------------------------------------------------------
// one benchmark

/// A statistic of the successful requests. A distribution of nothing is written as zeros with count
/// 0.
std::optional<double> statistic(const Json& metrics, std::string_view metric, JsonPath path,
                                int exponent = 0) {
    const Json* distribution = node_at(metrics, {metric, "successful"});
    if (distribution == nullptr || figure_at(*distribution, {"count"}) == 0) return std::nullopt;
    return figure_at(*distribution, path, exponent);
}

TimeSummary guidellm_times(const Json& metrics, std::string_view metric, int exponent) {
    const auto percentile = [&](std::string_view p) {
        return statistic(metrics, metric, {"percentiles", p}, exponent);
    };
    return {statistic(metrics, metric, {"mean"}, exponent),
            statistic(metrics, metric, {"median"}, exponent),
            percentile("p90"),
            percentile("p95"),
            percentile("p99"),
            statistic(metrics, metric, {"std_dev"}, exponent)};
}

/// Tokens of all successes: the sum; GPUStack keeps only the mean.
std::optional<double> tokens(const Json& metrics, std::string_view metric,
                             const std::optional<double>& successful) {
    if (const auto sum = statistic(metrics, metric, {"total_sum"})) return sum;
    const auto mean = statistic(metrics, metric, {"mean"});
    return mean && successful ? std::optional(*mean * *successful) : std::nullopt;
}

/// How GuideLLM itself prints a strategy: `synchronous`, `concurrent@4`, `constant@6.50`,
/// `throughput@unlimited`.
std::string name_of(const Json& strategy) {
    std::string type = text_at(strategy, {"type_"});
    if (type.empty()) type = text_at(strategy, {"kind"});
    const auto with = [&](std::string_view key) { return setting_at(strategy, {key}); };
    if (const auto streams = with("streams"); streams && type == "concurrent")
        return type + "@" + text_of(*streams);
    if (const auto rate = with("rate"); rate && (type == "constant" || type == "poisson"))
        return fmt::format("{}@{:.2f}", type, *rate);
    const auto most = with("max_concurrency");
    if (type == "throughput") return type + "@" + (most ? text_of(*most) : "unlimited");
    return type;
}

std::string utc(double unix_seconds) {
    if (unix_seconds > 4102444800.0) return text_of(unix_seconds);  // 2100-01-01: no date
    const auto seconds = static_cast<std::time_t>(unix_seconds);
    std::tm parts{};
    return gmtime_r(&seconds, &parts) == nullptr ? "" : fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

PublishedResult read_benchmark(const Json& benchmark) {
    PublishedResult result;
    result.tool = "guidellm";
    result.arguments_unknown = true;
    static const Json nothing = Json::object();
    const auto or_nothing = [](const Json* node) -> const Json& {
        return node == nullptr ? nothing : *node;
    };
    const Json& metrics = or_nothing(node_at(benchmark, {"metrics"}));
    const Json& totals = or_nothing(first_present(
        {node_at(metrics, {"request_totals"}), node_at(benchmark, {"request_totals"})}));
    const Json& strategy = or_nothing(first_present(
        {node_at(benchmark, {"config", "strategy"}), node_at(benchmark, {"args", "strategy"})}));
    BenchmarkResult& figures = result.result;
    figures.successful_requests = figure_at(totals, {"successful"});
    figures.failed_requests = figure_at(totals, {"errored"});
    // Cancelled at the time limit: neither successful nor failed.
    if (const auto incomplete = figure_at(totals, {"incomplete"}); incomplete && *incomplete > 0)
        result.unread["incomplete requests"] = text_of(*incomplete);
    figures.duration_seconds = figure_at(benchmark, {"duration"});
    if (const std::string name = name_of(strategy); !name.empty()) {
        result.labels.push_back(name);
        if (name == "synchronous") figures.maximum_concurrency = 1;
        else
            figures.maximum_concurrency = figure_at(
                strategy, {name.starts_with("concurrent") ? "streams" : "max_concurrency"});
        if (name.starts_with("constant") || name.starts_with("poisson"))
            figures.requested_rate_per_second = figure_at(strategy, {"rate"});
    }
    figures.peak_concurrent_requests = statistic(metrics, "request_concurrency", {"max"});
    figures.input_tokens = tokens(metrics, "prompt_token_count", figures.successful_requests);
    figures.output_tokens = tokens(metrics, "output_token_count", figures.successful_requests);
    figures.requests_per_second = statistic(metrics, "requests_per_second", {"mean"});
    figures.input_tokens_per_second = statistic(metrics, "prompt_tokens_per_second", {"mean"});
    figures.output_tokens_per_second = statistic(metrics, "output_tokens_per_second", {"mean"});
    figures.total_tokens_per_second = statistic(metrics, "tokens_per_second", {"mean"});
    // The largest of the rates is that of an interval of 0.1 ms between two tokens: no peak.
    figures.time_to_first_token = guidellm_times(metrics, "time_to_first_token_ms", -3);
    figures.time_per_output_token = guidellm_times(metrics, "time_per_output_token_ms", -3);
    figures.inter_token_latency = guidellm_times(metrics, "inter_token_latency_ms", -3);
    figures.latency = guidellm_times(metrics, "request_latency", 0);
    // To the first token of the answer behind the reasoning; the same where there is none.
    const auto first_output = statistic(metrics, "time_to_first_output_token_ms", {"mean"}, -3);
    if (first_output && first_output != figures.time_to_first_token.mean)
        result.unread["time_to_first_output_token mean"] = text_of(*first_output) + " s";
    result.model = text_at(benchmark, {"config", "backend", "model"});
    if (result.model.empty()) result.model = text_at(benchmark, {"worker", "backend_model"});
    if (const auto start = setting_at(benchmark, {"start_time"})) result.date = utc(*start);
    // Until 0.3.1 a benchmark had `args` where 0.4 has `config`; its time per output token leaves
    // out the first token.
    result.tool_version =
        benchmark.contains("run_stats") || benchmark.contains("args") ? "0.3" : "0.4";
    return result;
}

bool is_benchmark(const Json& value) {
    const Json* metrics = node_at(value, {"metrics"});
    return metrics != nullptr && metrics->is_object() &&
           (metrics->empty() ||
            (node_at(*metrics, {"request_latency", "successful"}) != nullptr &&
             node_at(*metrics, {"time_to_first_token_ms", "successful"}) != nullptr));
}

// -------------------------------------------------------------------------------------------------
// GuideLLM

bool is_guidellm(const Json& value) {
    const Json* benchmarks = node_at(value, {"benchmarks"});
    if (benchmarks == nullptr || !benchmarks->is_array()) return false;
    for (const Json& benchmark : *benchmarks)
        if (!is_benchmark(benchmark)) return false;
    return !benchmarks->empty() || node_at(value, {"metadata", "guidellm_version"}) != nullptr;
}

/// `args.data` (a text or a list of texts), `config.spec.data` (a list of objects); the first of
/// several.
std::string data_of(const Json* data) {
    if (data != nullptr && data->is_array()) data = data->empty() ? nullptr : &data->front();
    if (data == nullptr || data->is_null()) return "";
    if (const auto text = scalar_text(*data)) return *text;
    return one_line(data->dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::vector<PublishedResult> read_guidellm(const Json& value) {
    std::vector<PublishedResult> results;
    for (const Json& benchmark : *node_at(value, {"benchmarks"})) {
        PublishedResult result = read_benchmark(benchmark);
        const std::string version = text_at(value, {"metadata", "guidellm_version"});
        if (!version.empty()) result.tool_version = version;
        // 1 since 0.5, 2 since 0.7: its number changes where the format breaks.
        if (const auto schema = figure_at(value, {"metadata", "version"}); schema && *schema > 2)
            result.unread["metadata.version"] = text_of(*schema) + ": newer than 2, read as 2";
        if (result.model.empty())
            result.model = text_at(value, {"config", "spec", "backend", "model"});
        result.dataset = data_of(first_present({node_at(value, {"config", "spec", "data"}),
                                                node_at(value, {"args", "data"}),
                                                node_at(benchmark, {"request_loader", "data"})}));
        results.push_back(std::move(result));
    }
    return results;
}

// -------------------------------------------------------------------------------------------------
// GPUStack

bool is_stack_result(const Json& value) {
    return value.is_object() && value.contains("requests_per_second_mean") &&
           value.contains("request_latency_mean");
}

/// One benchmark of the server, a page of them (`items`), or the list of one benchmark's points.
bool is_gpustack(const Json& value) {
    if (const Json* items = node_at(value, {"items"}))
        return items->is_array() && !items->empty() && is_stack_result(items->front());
    return is_stack_result(value) ||
           (value.is_array() && !value.empty() && is_stack_result(value.front()));
}

/// Without the report: means and two percentiles, no duration, no tokens.
BenchmarkResult read_flat_figures(const Json& value) {
    BenchmarkResult figures;
    figures.successful_requests = figure_at(value, {"request_successful"});
    figures.failed_requests = figure_at(value, {"request_errored"});
    figures.peak_concurrent_requests = figure_at(value, {"request_concurrency_max"});
    figures.requests_per_second = figure_at(value, {"requests_per_second_mean"});
    figures.input_tokens_per_second = figure_at(value, {"input_tokens_per_second_mean"});
    figures.output_tokens_per_second = figure_at(value, {"output_tokens_per_second_mean"});
    figures.total_tokens_per_second = figure_at(value, {"tokens_per_second_mean"});
    const auto times = [&](const std::string& name, int exponent) {
        TimeSummary result;
        result.mean = figure_at(value, {name + "_mean"}, exponent);
        result.p95 = figure_at(value, {name + "_p95"}, exponent);
        result.p99 = figure_at(value, {name + "_p99"}, exponent);
        return result;
    };
    if (figures.successful_requests == 0) return figures;
    figures.time_to_first_token = times("time_to_first_token", -3);
    figures.time_per_output_token = times("time_per_output_token", -3);
    figures.inter_token_latency = times("inter_token_latency", -3);
    figures.latency = times("request_latency", 0);
    return figures;
}

void read_stack_result(const Json& value, std::vector<PublishedResult>& results) {
    // The report is in `raw_metrics`: a whole one, or the one benchmark of a point.
    std::vector<const Json*> benchmarks;
    const Json* raw = node_at(value, {"raw_metrics"});
    if (raw != nullptr && is_guidellm(*raw))
        for (const Json& benchmark : *node_at(*raw, {"benchmarks"}))
            benchmarks.push_back(&benchmark);
    else if (raw != nullptr && is_benchmark(*raw)) benchmarks.push_back(raw);
    else benchmarks.push_back(nullptr);

    for (const Json* benchmark : benchmarks) {
        PublishedResult result;
        if (benchmark != nullptr) result = read_benchmark(*benchmark);
        else result.result = read_flat_figures(value);
        if (!has_figures(result.result)) continue;  // one that waits or runs
        result.tool = "gpustack";
        result.tool_version
            .clear();  // of GPUStack unknown, and its runner has GuideLLM 0.5 or later
        if (result.model.empty()) result.model = text_at(value, {"model_name"});
        result.dataset = text_at(value, {"dataset_name"});
        for (const char* name : {"name", "profile", "dataset_name"})
            if (const std::string label = text_at(value, {name}); !label.empty())
                result.labels.push_back(label);
        if (const std::string created = text_at(value, {"created_at"}); !created.empty())
            result.date = created;
        if (const std::string state = text_at(value, {"state"});
            !state.empty() && state != "completed" && state != "stopped")
            result.unread["state"] = state;
        // The engine that was measured, where there is one: its flags are what a study needs.
        result.arguments_unknown = true;
        const Json* instances = node_at(value, {"snapshot", "instances"});
        if (instances != nullptr && instances->is_object() && instances->size() == 1) {
            const Json& instance = *instances->begin();
            if (const std::string engine = text_at(instance, {"backend"}); !engine.empty())
                result.unread["backend"] = engine;
            if (const std::string version = text_at(instance, {"backend_version"});
                !version.empty())
                result.unread["backend_version"] = version;
            const Json* parameters = node_at(instance, {"backend_parameters"});
            result.arguments_unknown = parameters == nullptr || !parameters->is_array();
            if (!result.arguments_unknown)
                for (const Json& parameter : *parameters)
                    if (const auto word = scalar_text(parameter))
                        result.arguments += (result.arguments.empty() ? "" : " ") + *word;
        }
        results.push_back(std::move(result));
    }
}

std::vector<PublishedResult> read_gpustack(const Json& value) {
    std::vector<PublishedResult> results;
    const Json* items = node_at(value, {"items"});
    if (items == nullptr && value.is_array()) items = &value;
    if (items == nullptr) read_stack_result(value, results);
    else
        for (const Json& item : *items) read_stack_result(item, results);
    return results;
}

}  // namespace

const ResultFormat guidellm_format{
    "guidellm", "benchmarks with metrics.request_latency and metrics.time_to_first_token_ms",
    is_guidellm, read_guidellm};
const ResultFormat gpustack_format{"gpustack", "requests_per_second_mean and request_latency_mean",
                                   is_gpustack, read_gpustack};

}  // namespace servetune
