// SPDX-License-Identifier: Apache-2.0
// The flat results of `vllm bench serve` (benchmark_serving.py before it) and of SGLang's
// bench_serving, which came from it: one object a run, times in milliseconds, arrays with one entry
// a request in seconds. Also our own, which are vLLM's and more.
#include "result_formats.hpp"
#include "servetune/detail/load/statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace servetune {
namespace {

using Json = nlohmann::json;

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

// -------------------------------------------------------------------------------------------------
// one entry a request

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
    for (auto figure : {&TimeSummary::mean, &TimeSummary::p50, &TimeSummary::p90, &TimeSummary::p95,
                        &TimeSummary::p99, &TimeSummary::standard_deviation})
        if (const std::optional<double>& value = own.*figure;
            !(times.*figure) && value && std::isfinite(*value))
            times.*figure = value;
}

/// The arrays of `--save-detailed` (vLLM) and `--output-details` (SGLang): counts of requests and
/// times that the summary lacks. `errors` says which succeeded; without it (`latencies` alone, in
/// vLLM's short form of 2026) those that took time.
void read_details(const Json& object, bool latency_is_sum_of_gaps, BenchmarkResult& result) {
    const auto latencies = numbers_of(node_at(object, {"latencies"}));
    const Json* errors = node_at(object, {"errors"});
    const bool marked = errors != nullptr && errors->is_array();
    if (!marked && !latencies) return;
    const std::size_t issued = marked ? errors->size() : latencies->size();
    std::vector<bool> succeeded(issued);
    for (std::size_t i = 0; i < issued; ++i)
        succeeded[i] = marked ? (*errors)[i] == "" : (*latencies)[i] > 0;
    const auto successes =
        static_cast<double>(std::count(succeeded.begin(), succeeded.end(), true));
    if (result.successful_requests && *result.successful_requests != successes)
        return;  // arrays of something else
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
            const std::vector<double> of_request =
                numbers_of(&(*gaps)[i]).value_or(std::vector<double>{});
            samples.inter_token_latency.insert(samples.inter_token_latency.end(),
                                               of_request.begin(), of_request.end());
            if (!whole && first && latency_is_sum_of_gaps) latency = (*first)[i] + sum(of_request);
        }
        if (latency) samples.latency.push_back(*latency);
        if (latency && first && output && (*first)[i] > 0 && *latency >= (*first)[i] &&
            (*output)[i] > 1)
            samples.time_per_output_token.push_back((*latency - (*first)[i]) / ((*output)[i] - 1));
    }
    complete(result.time_to_first_token, std::move(samples.time_to_first_token));
    complete(result.time_per_output_token, std::move(samples.time_per_output_token));
    complete(result.inter_token_latency, std::move(samples.inter_token_latency));
    complete(result.latency, std::move(samples.latency));
    // SGLang's runs of several turns write 0.
    if (input && result.input_tokens.value_or(0) == 0 && input_tokens > 0)
        result.input_tokens = input_tokens;
}

// -------------------------------------------------------------------------------------------------
// formats

PublishedResult read_flat(const Json& object, bool sglang) {
    ResultFields fields(object);
    PublishedResult result;
    BenchmarkResult& figures = result.result;
    for (const auto& [key, figure] : keys)
        if (const auto value = fields.figure(key)) figures.*figure = value;
    figures.time_to_first_token = fields.times("ttft", "_ms", -3);
    figures.time_per_output_token = fields.times("tpot", "_ms", -3);
    figures.inter_token_latency = fields.times("itl", "_ms", -3);
    figures.latency = fields.times(sglang ? "e2e_latency" : "e2el", "_ms", -3);
    read_details(object, !sglang, figures);
    const double completed = figures.successful_requests.value_or(0);
    if (completed > 0) {  // 0 of what a success cannot do without: not counted
        for (auto* figure : {&figures.input_tokens, &figures.peak_concurrent_requests,
                             &figures.peak_output_tokens_per_second})
            if (*figure == 0) figure->reset();
    } else {
        for (auto* times : {&figures.time_to_first_token, &figures.time_per_output_token,
                            &figures.inter_token_latency, &figures.latency})
            *times = {};
    }
    // The argument, not the number issued (a data set may have fewer): taken only where nothing
    // better is known, as then requests that vanished without a line (before 0.11.1) would
    // otherwise go unnoticed.
    const auto asked_for = fields.figure("num_prompts");
    if (!figures.failed_requests && asked_for >= figures.successful_requests)
        figures.requested_requests = asked_for;

    result.model = fields.text("model_id");
    if (result.model.empty()) result.model = text_at(object, {"server_info", "model_path"});
    result.dataset = fields.text("dataset_name");
    result.date = fields.text("date");
    // `vllm bench sweep` adds its settings under the names that they have in its files, and this
    // name of a combination.
    for (const std::string& label :
         {fields.text("_benchmark_name"), fields.text("label"), fields.text("tag"), result.dataset})
        if (!label.empty()) result.labels.push_back(label);
    if (const Json* run = node_at(object, {"run_number"}); run != nullptr && *run == -1)
        result.labels.emplace_back("warm-up");
    result.arguments_unknown = true;
    if (fields.figure("rtfx") == 0) (void)fields.text("rtfx");
    result.unread = fields.unread();
    // What SGLang's server says of itself; with vLLM's client people write it themselves
    // (`--metadata`).
    if (const Json* reported = node_at(object, {"server_info"});
        reported != nullptr && reported->is_object()) {
        for (const auto& [key, value] : reported->items())
            if (const auto text = scalar_text(value)) result.server_settings[one_line(key)] = *text;
    } else {
        for (const auto& [name, text] : result.unread) {
            std::string spelled = name;  // a sweep's files may spell names as flags
            std::replace(spelled.begin(), spelled.end(), '-', '_');
            result.server_settings[spelled] = text;
        }
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
           (value.contains("total_output_tokens_retokenized") ||
            value.contains("mean_e2e_latency_ms") ||
            (value.contains("input_throughput") && value.contains("dataset_name")));
}

std::vector<PublishedResult> read_sglang(const Json& value) {
    PublishedResult result = read_flat(value, true);
    result.tool = "sglang";
    return {result};
}

bool is_vllm(const Json& value) {
    return has_number(value, "duration") && has_number(value, "completed") &&
           has_number(value, "request_throughput");
}

std::vector<PublishedResult> read_vllm(const Json& value) {
    PublishedResult result = read_flat(value, false);
    result.tool = "vllm";
    return {result};
}

/// What the audit said when the load test ended. A file without it, or with a word that is none,
/// says nothing.
Validity own_verdict(const Json& value) {
    const auto verdict = named_in(verdicts, text_at(value, {"servetune", "verdict"}));
    if (!verdict) return {};
    Validity result{*verdict, {}};
    const Json* findings = node_at(value, {"servetune", "findings"});
    if (findings == nullptr || !findings->is_array()) return result;
    for (const Json& finding : *findings)
        result.findings.push_back({text_at(finding, {"id"}), text_at(finding, {"left"}),
                                   text_at(finding, {"right"}), text_at(finding, {"cause"})});
    return result;
}

bool is_ours(const Json& value) {
    const Json* figures = node_at(value, {"servetune", "figures"});
    return figures != nullptr && figures->is_object();
}

/// The keys of vLLM in our files are the same figures in its units, for its readers; ours are
/// exact.
std::vector<PublishedResult> read_ours(const Json& value) {
    PublishedResult result;
    result.tool = "servetune";
    for_each_figure(result.result, [&](const std::string& name, std::optional<double>& figure) {
        figure = figure_at(value, {"servetune", "figures", name});
    });
    result.validity = own_verdict(value);
    result.model = text_at(value, {"model_id"});
    result.dataset = text_at(value, {"servetune", "dataset"});
    result.date = text_at(value, {"date"});
    if (const std::string label = text_at(value, {"label"}); !label.empty())
        result.labels.push_back(label);
    if (!result.dataset.empty()) result.labels.push_back(result.dataset);
    const Json* arguments = node_at(value, {"servetune", "arguments"});
    result.arguments_unknown = arguments == nullptr || !arguments->is_string();
    if (!result.arguments_unknown) result.arguments = arguments->get<std::string>();
    return {result};
}

}  // namespace

const ResultFormat servetune_format{"servetune", "servetune.figures", is_ours, read_ours};
const ResultFormat vllm_format{"vllm", "duration, completed, request_throughput", is_vllm,
                               read_vllm};
const ResultFormat sglang_format{
    "sglang",
    "duration, completed and total_output_tokens_retokenized, mean_e2e_latency_ms or dataset_name",
    is_sglang, read_sglang};

}  // namespace servetune
