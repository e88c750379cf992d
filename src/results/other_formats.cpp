// SPDX-License-Identifier: Apache-2.0
// Reports of GuideLLM since 0.4 (one element of `benchmarks` a rate), summaries of
// `evalscope perf` since 0.17.1, aggregates of InferenceX, and the tests of llama-bench.
#include "result_format.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using B = BenchmarkResult;

// -------------------------------------------------------------------------------------------------
// GuideLLM

/// Of successful requests. The largest of the rates is that of an interval of 0.1 ms between two
/// tokens: no peak.
constexpr std::array<FigureRow, 14> guidellm_figures{
    {{"duration", &B::duration_seconds},
     {"metrics>request_totals>successful", &B::successful_requests},
     {"metrics>request_totals>errored", &B::failed_requests},
     {"metrics>request_concurrency>successful>max", &B::peak_concurrent_requests},
     {"metrics>prompt_token_count>successful>total_sum", &B::input_tokens},
     {"metrics>output_token_count>successful>total_sum", &B::output_tokens},
     {"metrics>requests_per_second>successful>mean", &B::requests_per_second},
     {"metrics>prompt_tokens_per_second>successful>mean", &B::input_tokens_per_second},
     {"metrics>output_tokens_per_second>successful>mean", &B::output_tokens_per_second},
     {"metrics>tokens_per_second>successful>mean", &B::total_tokens_per_second},
     {"metrics>time_to_first_token_ms>successful>*", &B::time_to_first_token, -3},
     {"metrics>time_per_output_token_ms>successful>*", &B::time_per_output_token, -3},
     {"metrics>inter_token_latency_ms>successful>*", &B::inter_token_latency, -3},
     {"metrics>request_latency>successful>*", &B::latency}}};
constexpr std::array<TextRow, 1> guidellm_texts{
    {{"config>backend>model", &PublishedResult::model}}};
constexpr StatisticNames guidellm_statistics{
    "mean", "median", "percentiles>p90", "percentiles>p95", "percentiles>p99", "std_dev"};

/// How GuideLLM itself prints a strategy: `synchronous`, `concurrent@4`, `constant@6.50`,
/// `throughput@unlimited`.
std::string strategy_name(const Json& strategy) {
    std::string type = text_at(strategy, "type_");
    if (type.empty()) type = text_at(strategy, "kind");
    const auto streams = setting_at(strategy, "streams"), rate = setting_at(strategy, "rate"),
               most = setting_at(strategy, "max_concurrency");
    if (streams && type == "concurrent") return type + "@" + text_of(*streams);
    if (rate && (type == "constant" || type == "poisson"))
        return fmt::format("{}@{:.2f}", type, *rate);
    if (type == "throughput") return type + "@" + (most ? text_of(*most) : "unlimited");
    return type;
}

std::string utc(double unix_seconds) {
    if (unix_seconds > 4102444800.0) return text_of(unix_seconds);  // 2100-01-01: no date
    const auto seconds = static_cast<std::time_t>(unix_seconds);
    std::tm parts{};
    return gmtime_r(&seconds, &parts) == nullptr ? "" : fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

PublishedResult read_guidellm_benchmark(Json benchmark) {
    if (benchmark.contains("args") || benchmark.contains("run_stats"))
        throw ParseError(
            "a report of GuideLLM before 0.4, whose time per output token is another: measure "
            "with a later one");
    // A distribution of nothing is written as zeros with count 0.
    if (const auto metrics = benchmark.find("metrics");
        metrics != benchmark.end() && metrics->is_object())
        for (auto& [name, metric] : metrics->items())
            if (figure_at(metric, "successful>count") == 0) metric = nullptr;
    PublishedResult result =
        read_fields(benchmark, {"guidellm", guidellm_figures, guidellm_texts, guidellm_statistics});
    BenchmarkResult& figures = result.result;
    // Cancelled at the time limit: neither successful nor failed.
    if (const auto cut = figure_at(benchmark, "metrics>request_totals>incomplete"); cut && *cut > 0)
        result.unread["incomplete requests"] = text_of(*cut);
    const Json* found = node_at(benchmark, "config>strategy");
    const Json strategy = found == nullptr ? Json() : *found;
    if (const std::string name = strategy_name(strategy); !name.empty()) {
        result.labels.push_back(name);
        figures.maximum_concurrency =
            name == "synchronous"
                ? 1
                : figure_at(strategy,
                            name.starts_with("concurrent") ? "streams" : "max_concurrency");
        if (name.starts_with("constant") || name.starts_with("poisson"))
            figures.requested_rate_per_second = figure_at(strategy, "rate");
    }
    // To the first token of the answer behind the reasoning; the same where there is none.
    const auto first_output =
        figure_at(benchmark, "metrics>time_to_first_output_token_ms>successful>mean", -3);
    if (first_output && first_output != figures.time_to_first_token.mean)
        result.unread["time_to_first_output_token mean"] = text_of(*first_output) + " s";
    if (const auto start = setting_at(benchmark, "start_time")) result.date = utc(*start);
    return result;
}

bool is_guidellm(const Json& value) {
    const Json* benchmarks = node_at(value, "benchmarks");
    if (benchmarks == nullptr || !benchmarks->is_array()) return false;
    for (const Json& benchmark : *benchmarks) {
        const Json* metrics = node_at(benchmark, "metrics");
        if (metrics == nullptr || !metrics->is_object() ||
            (!metrics->empty() &&
             (node_at(*metrics, "request_latency>successful") == nullptr ||
              node_at(*metrics, "time_to_first_token_ms>successful") == nullptr)))
            return false;
    }
    return !benchmarks->empty() || node_at(value, "metadata>guidellm_version") != nullptr;
}

std::vector<PublishedResult> read_guidellm(const Json& value) {
    std::vector<PublishedResult> results;
    for (const Json& benchmark : *node_at(value, "benchmarks")) {
        PublishedResult result = read_guidellm_benchmark(benchmark);
        result.tool_version = text_at(value, "metadata>guidellm_version");
        // 1 since 0.5, 2 since 0.7: its number changes where the format breaks.
        if (const auto schema = figure_at(value, "metadata>version"); schema && *schema > 2)
            result.unread["metadata.version"] = text_of(*schema) + ": newer than 2, read as 2";
        if (result.model.empty()) result.model = text_at(value, "config>spec>backend>model");
        // A text, a list of texts or of objects: the first of several.
        const Json* data = node_at(value, "config>spec>data");
        if (data == nullptr || data->is_null()) data = node_at(value, "args>data");
        if (data != nullptr && data->is_array()) data = data->empty() ? nullptr : &data->front();
        if (data != nullptr && !data->is_null())
            result.dataset = scalar_text(*data).value_or(
                one_line(data->dump(-1, ' ', false, Json::error_handler_t::replace)));
        results.push_back(std::move(result));
    }
    return results;
}

// -------------------------------------------------------------------------------------------------
// evalscope: names and units changed, seconds until 1.6, milliseconds from 1.7 for times of tokens

constexpr std::array<FigureRow, 33> evalscope_figures{
    {{"Time taken for tests (s)", &B::duration_seconds},
     {"Test Duration (s)", &B::duration_seconds},
     {"Number of concurrency", &B::maximum_concurrency},  // -1: no cap
     {"Concurrency", &B::maximum_concurrency},
     {"Request rate (req/s)", &B::requested_rate_per_second},  // -1: all at once
     {"Request Rate (req/s)", &B::requested_rate_per_second},
     {"Total requests", &B::requested_requests},
     {"Total Requests", &B::requested_requests},
     {"Succeed requests", &B::successful_requests},
     {"Success Requests", &B::successful_requests},
     {"Failed requests", &B::failed_requests},
     {"Failed Requests", &B::failed_requests},
     {"Request throughput (req/s)", &B::requests_per_second},
     {"Req Throughput (req/s)", &B::requests_per_second},
     {"Output token throughput (tok/s)", &B::output_tokens_per_second},
     {"Output Throughput (tok/s)", &B::output_tokens_per_second},
     {"Total token throughput (tok/s)", &B::total_tokens_per_second},
     {"Total Throughput (tok/s)", &B::total_tokens_per_second},
     {"Average input tokens per request", &B::input_tokens},
     {"Avg Input Tokens", &B::input_tokens},
     {"Average output tokens per request", &B::output_tokens},
     {"Avg Output Tokens", &B::output_tokens},
     {"Average latency (s)", &B::latency},
     {"Avg Latency (s)", &B::latency},
     {"Average time to first token (s)", &B::time_to_first_token},
     {"TTFT (ms)", &B::time_to_first_token, -3},
     {"Avg TTFT (ms)", &B::time_to_first_token, -3},
     {"Average time per output token (s)", &B::time_per_output_token},
     {"TPOT (ms)", &B::time_per_output_token, -3},
     {"Avg TPOT (ms)", &B::time_per_output_token, -3},
     {"Average inter-token latency (s)", &B::inter_token_latency},
     {"ITL (ms)", &B::inter_token_latency, -3},
     {"Avg ITL (ms)", &B::inter_token_latency, -3}}};

bool is_evalscope(const Json& value) {
    const auto any = [&](std::initializer_list<std::string_view> names) {
        return std::any_of(names.begin(), names.end(),
                           [&](std::string_view name) { return node_at(value, name) != nullptr; });
    };
    return any({"Succeed requests", "Success Requests"}) &&
           any({"Average latency (s)", "Avg Latency (s)"});
}

std::vector<PublishedResult> read_evalscope(const Json& value) {
    const ToolFields fields{.tool = "evalscope", .figures = evalscope_figures};
    PublishedResult result = read_fields(value, fields);
    BenchmarkResult& figures = result.result;
    if (!figures.inter_token_latency.mean)
        throw ParseError(
            "a summary of evalscope before 0.17.1, whose time per output token is another: "
            "measure with a later one");
    for (auto* load : {&figures.maximum_concurrency, &figures.requested_rate_per_second})
        if (*load <= 0) load->reset();
    if (figures.failed_requests) figures.requested_requests.reset();
    for (auto* tokens : {&figures.input_tokens, &figures.output_tokens})
        *tokens = total_of(*tokens, figures.successful_requests);
    // Means are -1 where nothing succeeded, 0 where nothing was measured.
    for (const auto family : time_families)
        if (!(figures.successful_requests > 0) || (figures.*family).mean == 0) figures.*family = {};
    // An answer that was not streamed has its latency as the time to the first token, and no time
    // per token.
    if (!figures.time_per_output_token.mean) figures.time_to_first_token = {};
    result.unread = unread_of(value, fields);
    return {result};
}

// -------------------------------------------------------------------------------------------------
// InferenceX (InferenceMAX before): agg_*.json of one run, or agg_bmk.json, a list of them, made of
// vLLM's result: times in seconds, tokens a second of one GPU.

constexpr std::array<FigureRow, 5> inferencex_figures{{{"conc", &B::maximum_concurrency},
                                                       {"*_ttft", &B::time_to_first_token},
                                                       {"*_tpot", &B::time_per_output_token},
                                                       {"*_itl", &B::inter_token_latency},
                                                       {"*_e2el", &B::latency}}};
constexpr std::array<TextRow, 1> model_text{{{"model", &PublishedResult::model}}};
constexpr StatisticNames inferencex_statistics{"mean", "median", "p90", "p95", "p99", "std"};

bool is_inferencex_row(const Json& row) {
    const auto number = [&](const char* key) {
        const Json* node = node_at(row, key);
        return node != nullptr && node->is_number();
    };
    const Json* hardware = node_at(row, "hw");
    return hardware != nullptr && hardware->is_string() && number("conc") && number("tput_per_gpu");
}

/// Rates of the deployment, from those of one GPU of all, of the prompts' and of the answers'.
/// Before it named the GPUs of each phase the tool divided by some that the row does not have:
/// where prompts and answers do not add up to all tokens only the sum of both is read.
void read_rates(const Json& row, BenchmarkResult& figures, std::set<std::string>& asked) {
    const auto prefill = setting_at(row, "num_prefill_gpu"),
               decode = setting_at(row, "num_decode_gpu"), tensor = setting_at(row, "tp");
    const Json* multinode = node_at(row, "is_multinode");
    double all = 0, of_prompts = 0, of_answers = 0;
    if (multinode != nullptr && *multinode == true) {
        if (!prefill || !decode || *prefill <= 0) return;
        // Without decoding GPUs both phases run on the others.
        all = *prefill + *decode, of_prompts = *prefill;
        of_answers = *decode > 0 ? *decode : *prefill;
    } else {
        if (!tensor || *tensor <= 0) return;
        all = of_prompts = of_answers =
            *tensor * setting_at(row, "pp").value_or(1) * setting_at(row, "pcp_size").value_or(1);
    }
    const auto times = [&](const char* key, double gpus) {
        const auto rate = figure_at(row, key);
        return rate && std::isfinite(*rate * gpus) ? std::optional(*rate * gpus) : std::nullopt;
    };
    const auto total = times("tput_per_gpu", all),
               prompts = times("input_tput_per_gpu", of_prompts),
               answers = times("output_tput_per_gpu", of_answers);
    figures.total_tokens_per_second = total;
    asked.insert("tput_per_gpu");
    if (total && prompts && answers && std::abs(*prompts + *answers - *total) > 1e-6 * *total)
        return;
    figures.input_tokens_per_second = prompts;
    figures.output_tokens_per_second = answers;
    asked.insert({"input_tput_per_gpu", "output_tput_per_gpu"});
}

PublishedResult read_inferencex_row(const Json& row) {
    const ToolFields fields{"inferencex", inferencex_figures, model_text, inferencex_statistics};
    PublishedResult result = read_fields(row, fields);
    std::set<std::string> asked;
    for (const std::string_view name : inferencex_statistics)  // reciprocals of tpot
        asked.insert(std::string(name) + "_intvty");
    read_rates(row, result.result, asked);
    // The engine's flags are in a recipe elsewhere.
    const std::string framework = text_at(row, "framework");
    if (framework == "vllm" || framework == "sglang") result.engine = framework;
    std::string label;
    for (const std::string& part : {text_at(row, "hw"), framework, text_at(row, "precision")})
        if (!part.empty()) label += (label.empty() ? "" : " ") + part;
    // Rows of one list are of other loads: what names them says so.
    for (const char* key : {"isl", "osl", "conc"})
        if (const auto number = setting_at(row, key))
            label += std::string(" ") + key + "=" + text_of(*number);
    result.labels.push_back(label);
    result.unread = unread_of(row, fields, std::move(asked));
    return result;
}

// -------------------------------------------------------------------------------------------------
// llama-bench: prompts alone, answers alone, or both, of one stream. No server and no requests:
// rates and lengths only.

constexpr std::array<FigureRow, 3> bench_figures{{{"n_prompt", &B::input_tokens},
                                                  {"n_gen", &B::output_tokens},
                                                  {"avg_ns", &B::duration_seconds, -9}}};
constexpr std::array<TextRow, 3> bench_texts{{{"model_filename", &PublishedResult::model},
                                              {"model_type", &PublishedResult::model},
                                              {"test_time", &PublishedResult::date}}};

bool is_bench_test(const Json& value) {
    return value.is_object() && value.contains("avg_ts") && value.contains("n_prompt") &&
           value.contains("n_gen");
}

PublishedResult read_bench_test(const Json& value) {
    const ToolFields fields{"llama-bench", bench_figures, bench_texts};
    PublishedResult result = read_fields(value, fields);
    if (const Json* build = node_at(value, "build_number"); build != nullptr && build->is_number())
        result.tool_version = "b" + scalar_text(*build).value_or("");
    BenchmarkResult& figures = result.result;
    std::string label;
    for (auto [tokens, name] :
         {std::pair{&figures.input_tokens, "pp"}, std::pair{&figures.output_tokens, "tg"}}) {
        if (!(*tokens > 0)) tokens->reset();
        else label += (label.empty() ? "" : "+") + std::string(name) + short_number_text(**tokens);
    }
    (figures.input_tokens && figures.output_tokens ? figures.total_tokens_per_second
     : figures.input_tokens                        ? figures.input_tokens_per_second
                            : figures.output_tokens_per_second) = figure_at(value, "avg_ts");
    // Behind a context of so many tokens, which are in no rate and no time.
    if (const auto depth = setting_at(value, "n_depth"); depth && *depth > 0)
        label += " @ d" + short_number_text(*depth);
    result.labels.push_back(label);
    result.unread = unread_of(value, fields, {"avg_ts", "build_number"});
    result.server_settings = result.unread;  // n_batch, n_threads, type_k, ...
    return result;
}

template <bool (*is_row)(const Json&)>
bool is_row_or_list(const Json& value) {
    return is_row(value) || (value.is_array() && !value.empty() && is_row(value.front()));
}

constexpr std::array<ResultFormat, 5> other_known_formats{
    {{"guidellm", "benchmarks with metrics.request_latency and metrics.time_to_first_token_ms",
      is_guidellm, read_guidellm},
     {"llama-bench", "avg_ts, n_prompt, n_gen", is_row_or_list<is_bench_test>,
      [](const Json& value) {
          return read_rows(value, is_bench_test, read_bench_test,
                           "test of llama-bench: avg_ts, n_prompt and n_gen");
      }},
     {"evalscope", "Success Requests and Avg Latency (s), or their older names", is_evalscope,
      read_evalscope},
     {"evalscope", "a list of rows with Percentiles",
      [](const Json& value) {
          return value.is_array() && !value.empty() &&
                 node_at(value.front(), "Percentiles") != nullptr;
      },
      [](const Json&) -> std::vector<PublishedResult> {
          throw ParseError(
              "percentiles of evalscope without its counts: give the summary beside "
              "them, benchmark_summary.json");
      }},
     {"inferencex", "hw, conc and tput_per_gpu", is_row_or_list<is_inferencex_row>,
      [](const Json& value) {
          return read_rows(value, is_inferencex_row, read_inferencex_row,
                           "row of InferenceX: hw, conc and tput_per_gpu");
      }}}};

}  // namespace

const std::span<const ResultFormat> other_formats(other_known_formats);

}  // namespace servetune
