// SPDX-License-Identifier: Apache-2.0
// The flat results of `vllm bench serve` (benchmark_serving.py before it) and of SGLang's bench_serving, which came
// from it: one object a run, times in milliseconds, arrays with one entry a request in seconds. Also our own, which are
// vLLM's and more.
#include "result_formats.hpp"
#include "servetune/load/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// The top level of a result; remembers what was asked for, so that the rest can be told.
class Fields {
public:
    explicit Fields(const Json& object) : object_(object) {}

    std::optional<double> figure(const std::string& key, int exponent = 0) {
        asked_.insert(key);
        return figure_at(object_, {key}, exponent);
    }
    std::string text(const std::string& key) {
        asked_.insert(key);
        return text_at(object_, {key});
    }

    /// Numbers, texts and truth values that nobody asked for: `--metadata`, the load's settings, speculative decoding.
    [[nodiscard]] std::map<std::string, std::string> unread() const {
        std::map<std::string, std::string> result;
        for (const auto& [key, value] : object_.items())
            if (!asked_.contains(key))
                if (const auto text = scalar_text(value)) result[one_line(key)] = *text;
        return result;
    }

private:
    const Json& object_;
    std::set<std::string> asked_;
};

/// Keys of either tool -> our figures. `request_goodput:` is how vLLM spelled it until 0.9.1.
constexpr std::array<std::pair<const char*, std::optional<double> BenchmarkResult::*>, 17> keys{{
    {"completed", &BenchmarkResult::successful_requests},
    {"failed", &BenchmarkResult::failed_requests},
    {"duration", &BenchmarkResult::duration_seconds},
    {"max_concurrency", &BenchmarkResult::maximum_concurrency},
    {"max_concurrent_requests", &BenchmarkResult::peak_concurrent_requests},
    {"concurrency", &BenchmarkResult::mean_concurrency},
    {"request_rate", &BenchmarkResult::requested_rate_per_second},
    {"total_input_tokens", &BenchmarkResult::input_tokens},
    {"total_output_tokens", &BenchmarkResult::output_tokens},
    {"request_throughput", &BenchmarkResult::requests_per_second},
    {"request_goodput:", &BenchmarkResult::goodput_requests_per_second},
    {"request_goodput", &BenchmarkResult::goodput_requests_per_second},
    {"input_throughput", &BenchmarkResult::input_tokens_per_second},
    {"output_throughput", &BenchmarkResult::output_tokens_per_second},
    {"max_output_tokens_per_s", &BenchmarkResult::peak_output_tokens_per_second},
    {"total_token_throughput", &BenchmarkResult::total_tokens_per_second},
    {"total_throughput", &BenchmarkResult::total_tokens_per_second},
}};

/// A family of times. Both tools write 0 for what was not measured (the mean of an empty list): mean, median and
/// standard deviation of 0 mean that nothing was streamed, nothing succeeded, or every answer had one token.
TimeSummary serving_times(Fields& fields, const std::string& family) {
    const auto at = [&](const char* statistic) { return fields.figure(statistic + family + "_ms", -3); };
    TimeSummary result{at("mean_"), at("median_"), at("p90_"), at("p95_"), at("p99_"), at("std_")};
    const auto median = at("p50_");  // vLLM writes it beside the median when it is asked for
    if (!result.p50) result.p50 = median;
    bool any = false;
    bool zeros = true;
    for (const auto& figure : {result.mean, result.p50, result.standard_deviation})
        if (figure) any = true, zeros = zeros && figure == 0;
    return any && zeros ? TimeSummary{} : result;
}

// ------------------------------------------------------------------------------------------------- one entry a request

/// The numbers of an array, an entry that is none as 0; nothing when there is no such array.
std::optional<std::vector<double>> numbers_of(const Json* array) {
    if (array == nullptr || !array->is_array()) return std::nullopt;
    std::vector<double> result;
    for (const Json& entry : *array) result.push_back(figure_at(entry, {}).value_or(0));
    return result;
}

double sum(const std::vector<double>& values) {
    double result = 0;
    for (const double value : values) result += value;
    return result;
}

/// What a detailed file says of its successful requests.
struct Samples {
    std::vector<double> time_to_first_token, time_per_output_token, inter_token_latency, latency;
};

/// Fills what the summary does not have; both tools take percentiles as `summary_of` does.
void complete(TimeSummary& times, std::vector<double> values) {
    if (std::all_of(values.begin(), values.end(), [](double value) { return value == 0; })) return;
    const TimeSummary own = summary_of(std::move(values));
    for (auto figure :
         {&TimeSummary::mean, &TimeSummary::p50, &TimeSummary::p90, &TimeSummary::p95, &TimeSummary::p99, &TimeSummary::standard_deviation})
        if (const std::optional<double>& value = own.*figure; !(times.*figure) && value && std::isfinite(*value)) times.*figure = value;
}

/// The arrays of `--save-detailed` (vLLM) and `--output-details` (SGLang): counts of requests and times that the
/// summary lacks. `errors` says which succeeded; without it (`latencies` alone, in vLLM's short form of 2026) those
/// that took time.
void read_details(const Json& object, bool latency_is_sum_of_gaps, BenchmarkResult& result) {
    const auto latencies = numbers_of(node_at(object, {"latencies"}));
    const Json* errors = node_at(object, {"errors"});
    const bool marked = errors != nullptr && errors->is_array();
    if (!marked && !latencies) return;
    const std::size_t issued = marked ? errors->size() : latencies->size();
    std::vector<bool> succeeded(issued);
    for (std::size_t i = 0; i < issued; ++i) succeeded[i] = marked ? (*errors)[i] == "" : (*latencies)[i] > 0;
    const auto successes = static_cast<double>(std::count(succeeded.begin(), succeeded.end(), true));
    if (result.successful_requests && *result.successful_requests != successes) return;  // arrays of something else
    result.successful_requests = successes;
    if (!result.failed_requests) result.failed_requests = static_cast<double>(issued) - successes;

    const auto column = [&](const char* key) {
        const auto values = numbers_of(node_at(object, {key}));
        return values && values->size() == issued ? values : std::nullopt;
    };
    const auto first = column("ttfts");
    const auto input = column("input_lens");
    const auto output = column("output_lens");
    const auto whole = column("latencies");
    const Json* gaps = node_at(object, {"itls"});
    const bool streamed = gaps != nullptr && gaps->is_array() && gaps->size() == issued;
    Samples samples;
    double input_tokens = 0;
    for (std::size_t i = 0; i < issued; ++i) {
        if (!succeeded[i]) continue;
        if (input) input_tokens += (*input)[i];
        if (first) samples.time_to_first_token.push_back((*first)[i]);
        std::optional<double> latency;
        if (whole) latency = (*whole)[i];
        if (streamed) {
            const std::vector<double> of_request = numbers_of(&(*gaps)[i]).value_or(std::vector<double>{});
            samples.inter_token_latency.insert(samples.inter_token_latency.end(), of_request.begin(), of_request.end());
            if (!whole && first && latency_is_sum_of_gaps) latency = (*first)[i] + sum(of_request);
        }
        if (latency) samples.latency.push_back(*latency);
        if (latency && first && output && (*first)[i] > 0 && (*output)[i] > 1)
            samples.time_per_output_token.push_back((*latency - (*first)[i]) / ((*output)[i] - 1));
    }
    complete(result.time_to_first_token, std::move(samples.time_to_first_token));
    complete(result.time_per_output_token, std::move(samples.time_per_output_token));
    complete(result.inter_token_latency, std::move(samples.inter_token_latency));
    complete(result.latency, std::move(samples.latency));
    // SGLang's runs of several turns write 0.
    if (input && result.input_tokens.value_or(0) == 0 && input_tokens > 0) result.input_tokens = input_tokens;
}

// --------------------------------------------------------------------------------------------------------------
// formats

PublishedResult read_flat(const Json& object, bool sglang) {
    Fields fields(object);
    PublishedResult result;
    BenchmarkResult& figures = result.result;
    for (const auto& [key, figure] : keys)
        if (const auto value = fields.figure(key)) figures.*figure = value;
    figures.time_to_first_token = serving_times(fields, "ttft");
    figures.time_per_output_token = serving_times(fields, "tpot");
    figures.inter_token_latency = serving_times(fields, "itl");
    figures.latency = serving_times(fields, sglang ? "e2e_latency" : "e2el");
    read_details(object, !sglang, figures);
    const double completed = figures.successful_requests.value_or(0);
    if (completed > 0) {  // 0 of what a success cannot do without: not counted
        for (auto* figure : {&figures.input_tokens, &figures.peak_concurrent_requests, &figures.peak_output_tokens_per_second})
            if (*figure == 0) figure->reset();
    } else {
        for (auto* times : {&figures.time_to_first_token, &figures.time_per_output_token, &figures.inter_token_latency, &figures.latency})
            *times = {};
    }
    // The argument, not the number issued (a data set may have fewer): taken only where nothing better is known, as
    // then requests that vanished without a line (before 0.11.1) would otherwise go unnoticed.
    const auto asked_for = fields.figure("num_prompts");
    if (!figures.failed_requests && asked_for >= figures.successful_requests) figures.requested_requests = asked_for;

    result.model = fields.text("model_id");
    if (result.model.empty()) result.model = text_at(object, {"server_info", "model_path"});
    result.dataset = fields.text("dataset_name");
    result.date = fields.text("date");
    for (const std::string& label : {fields.text("label"), fields.text("tag"), result.dataset})
        if (!label.empty()) result.labels.push_back(label);
    result.arguments_unknown = true;
    if (fields.figure("rtfx") == 0) (void)fields.text("rtfx");
    result.unread = fields.unread();
    // What SGLang's server says of itself; with vLLM's client people write it themselves (`--metadata`).
    if (const Json* reported = node_at(object, {"server_info"}); reported != nullptr && reported->is_object()) {
        for (const auto& [key, value] : reported->items())
            if (const auto text = scalar_text(value)) result.server_settings[one_line(key)] = *text;
    } else {
        result.server_settings = result.unread;
        result.server_settings_are_given = true;
    }
    return result;
}

bool has_number(const Json& value, std::string_view key) {
    const Json* node = node_at(value, {key});
    return node != nullptr && node->is_number();
}

bool is_sglang(const Json& value) {
    return has_number(value, "duration") && has_number(value, "completed") &&
           (value.contains("total_output_tokens_retokenized") || value.contains("mean_e2e_latency_ms") ||
            (value.contains("input_throughput") && value.contains("dataset_name")));
}

std::vector<PublishedResult> read_sglang(const Json& value) {
    PublishedResult result = read_flat(value, true);
    result.tool = "sglang";
    return {result};
}

bool is_vllm(const Json& value) {
    return has_number(value, "duration") && has_number(value, "completed") && has_number(value, "request_throughput");
}

std::vector<PublishedResult> read_vllm(const Json& value) {
    PublishedResult result = read_flat(value, false);
    result.tool = "vllm";
    return {result};
}

bool is_ours(const Json& value) {
    const Json* figures = node_at(value, {"servetune", "figures"});
    return figures != nullptr && figures->is_object();
}

/// The keys of vLLM in our files are the same figures in its units, for its readers; ours are exact.
std::vector<PublishedResult> read_ours(const Json& value) {
    PublishedResult result;
    result.tool = "servetune";
    for_each_figure(result.result, [&](const std::string& name, std::optional<double>& figure) {
        figure = figure_at(value, {"servetune", "figures", name});
    });
    result.model = text_at(value, {"model_id"});
    result.dataset = text_at(value, {"servetune", "dataset"});
    result.date = text_at(value, {"date"});
    if (const std::string label = text_at(value, {"label"}); !label.empty()) result.labels.push_back(label);
    if (!result.dataset.empty()) result.labels.push_back(result.dataset);
    const Json* arguments = node_at(value, {"servetune", "arguments"});
    result.arguments_unknown = arguments == nullptr || !arguments->is_string();
    if (!result.arguments_unknown) result.arguments = arguments->get<std::string>();
    return {result};
}

}  // namespace

const ResultFormat servetune_format{"servetune", "servetune.figures", is_ours, read_ours};
const ResultFormat vllm_format{"vllm", "duration, completed, request_throughput", is_vllm, read_vllm};
const ResultFormat sglang_format{"sglang", "duration, completed and total_output_tokens_retokenized, mean_e2e_latency_ms or dataset_name",
                                 is_sglang, read_sglang};

}  // namespace servetune
