// SPDX-License-Identifier: Apache-2.0
// Reports of GuideLLM since 0.4 (one element of `benchmarks` a rate), summaries and percentiles of
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

PublishedResult result_of_tool(const char* tool) {
    PublishedResult result;
    result.tool = tool;
    result.arguments_unknown = true;
    return result;
}

// -------------------------------------------------------------------------------------------------
// GuideLLM

constexpr std::array<FigureField, 4> guidellm_counts{
    {{"metrics>request_totals>successful", &B::successful_requests},
     {"metrics>request_totals>errored", &B::failed_requests},
     {"duration", &B::duration_seconds},
     {"metrics>request_concurrency>successful>max", &B::peak_concurrent_requests}}};
/// Of successful requests. The largest of the rates is that of an interval of 0.1 ms between two
/// tokens: no peak.
constexpr std::array<FigureField, 6> guidellm_figures{
    {{"prompt_token_count>successful>total_sum", &B::input_tokens},
     {"output_token_count>successful>total_sum", &B::output_tokens},
     {"requests_per_second>successful>mean", &B::requests_per_second},
     {"prompt_tokens_per_second>successful>mean", &B::input_tokens_per_second},
     {"output_tokens_per_second>successful>mean", &B::output_tokens_per_second},
     {"tokens_per_second>successful>mean", &B::total_tokens_per_second}}};
constexpr std::array<TimesField, 4> guidellm_times{
    {{"time_to_first_token_ms>successful>*", &B::time_to_first_token, -3},
     {"time_per_output_token_ms>successful>*", &B::time_per_output_token, -3},
     {"inter_token_latency_ms>successful>*", &B::inter_token_latency, -3},
     {"request_latency>successful>*", &B::latency, 0}}};
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

PublishedResult read_guidellm_benchmark(const Json& benchmark) {
    static const Json nothing = Json::object();
    const auto below = [&](std::string_view path) -> const Json& {
        const Json* node = node_at(benchmark, path);
        return node == nullptr || node->is_null() ? nothing : *node;
    };
    if (benchmark.contains("args") || benchmark.contains("run_stats"))
        throw ParseError(
            "a report of GuideLLM before 0.4, whose time per output token is another: measure "
            "with a later one");
    PublishedResult result = result_of_tool("guidellm");
    BenchmarkResult& figures = result.result;
    read_fields(benchmark, guidellm_counts, figures);
    // A distribution of nothing is written as zeros with count 0.
    Json metrics = below("metrics");
    if (metrics.is_object())
        for (auto& [name, metric] : metrics.items())
            if (figure_at(metric, "successful>count") == 0) metric = nullptr;
    read_fields(metrics, guidellm_figures, figures);
    read_fields(metrics, guidellm_times, guidellm_statistics, figures);
    if (!node_at(metrics, "request_concurrency>successful"))
        figures.peak_concurrent_requests.reset();
    // Cancelled at the time limit: neither successful nor failed.
    if (const auto cut = figure_at(benchmark, "metrics>request_totals>incomplete"); cut && *cut > 0)
        result.unread["incomplete requests"] = text_of(*cut);
    const Json& strategy = below("config>strategy");
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
        figure_at(metrics, "time_to_first_output_token_ms>successful>mean", -3);
    if (first_output && first_output != figures.time_to_first_token.mean)
        result.unread["time_to_first_output_token mean"] = text_of(*first_output) + " s";
    result.model = text_at(benchmark, "config>backend>model");
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

constexpr std::array<FigureField, 18> evalscope_figures{
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
     {"Total Throughput (tok/s)", &B::total_tokens_per_second}}};
/// Means of one request.
constexpr std::array<FigureField, 4> evalscope_lengths{
    {{"Average input tokens per request", &B::input_tokens},
     {"Avg Input Tokens", &B::input_tokens},
     {"Average output tokens per request", &B::output_tokens},
     {"Avg Output Tokens", &B::output_tokens}}};
constexpr std::array<TimesField, 11> evalscope_means{
    {{"Average latency (s)", &B::latency, 0},
     {"Avg Latency (s)", &B::latency, 0},
     {"Average time to first token (s)", &B::time_to_first_token, 0},
     {"TTFT (ms)", &B::time_to_first_token, -3},
     {"Avg TTFT (ms)", &B::time_to_first_token, -3},
     {"Average time per output token (s)", &B::time_per_output_token, 0},
     {"TPOT (ms)", &B::time_per_output_token, -3},
     {"Avg TPOT (ms)", &B::time_per_output_token, -3},
     {"Average inter-token latency (s)", &B::inter_token_latency, 0},
     {"ITL (ms)", &B::inter_token_latency, -3},
     {"Avg ITL (ms)", &B::inter_token_latency, -3}}};

/// Whether an object has any name of a figure.
bool names_any(const Json& value, const auto& rows, const auto& figure) {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
        bool same = false;
        if constexpr (requires { row.figure == figure; }) same = row.figure == figure;
        else same = row.times == figure;
        return same && node_at(value, row.path) != nullptr;
    });
}

bool is_evalscope(const Json& value) {
    return names_any(value, evalscope_figures, &B::duration_seconds) &&
           names_any(value, evalscope_figures, &B::maximum_concurrency) &&
           names_any(value, evalscope_figures, &B::successful_requests) &&
           names_any(value, evalscope_means, &B::latency);
}

std::vector<PublishedResult> read_evalscope(const Json& value) {
    if (!names_any(value, evalscope_means, &B::inter_token_latency))
        throw ParseError(
            "a summary of evalscope before 0.17.1, whose time per output token is another: "
            "measure with a later one");
    PublishedResult result = result_of_tool("evalscope");
    BenchmarkResult& figures = result.result;
    read_fields(value, evalscope_figures, figures);
    for (auto* load : {&figures.maximum_concurrency, &figures.requested_rate_per_second})
        if (*load <= 0) load->reset();
    if (figures.failed_requests) figures.requested_requests.reset();
    BenchmarkResult lengths;
    read_fields(value, evalscope_lengths, lengths);  // with four decimals
    figures.input_tokens = total_of(lengths.input_tokens, figures.successful_requests);
    figures.output_tokens = total_of(lengths.output_tokens, figures.successful_requests);
    // Means are -1 where nothing succeeded, 0 where nothing was measured.
    if (figures.successful_requests > 0)
        for (const TimesField& row : evalscope_means)
            if (const auto mean = figure_at(value, row.path, row.exponent); mean && mean != 0)
                (figures.*row.times).mean = mean;
    // An answer that was not streamed has its latency as the time to the first token, and no time
    // per token.
    if (!figures.time_per_output_token.mean) figures.time_to_first_token = {};
    std::set<std::string> asked;
    for (const auto& row : evalscope_figures) asked.emplace(row.path);
    for (const auto& row : evalscope_lengths) asked.emplace(row.path);
    for (const auto& row : evalscope_means) asked.emplace(row.path);
    result.unread = scalars_of(value, asked);
    return {result};
}

constexpr std::array<TimesField, 6> evalscope_percentiles{
    {{"Latency (s)", &B::latency, 0},
     {"TTFT (s)", &B::time_to_first_token, 0},
     {"TTFT (ms)", &B::time_to_first_token, -3},
     {"TPOT (ms)", &B::time_per_output_token, -3},
     {"ITL (s)", &B::inter_token_latency, 0},
     {"ITL (ms)", &B::inter_token_latency, -3}}};

/// The order statistic at `count * p / 100`, not a value between two. Without the counts and means
/// of the summary. In a file with seconds (before 1.7) the time per token may be the one from
/// before 0.17.1, so it is not read.
std::vector<PublishedResult> read_evalscope_percentiles(const Json& value) {
    PublishedResult result = result_of_tool("evalscope");
    BenchmarkResult& figures = result.result;
    bool streamed = false;
    for (const auto& [percentile, statistic] : {std::pair{"50%", &TimeSummary::p50},
                                                {"90%", &TimeSummary::p90},
                                                {"95%", &TimeSummary::p95},
                                                {"99%", &TimeSummary::p99}})
        for (const Json& row : value) {
            if (text_at(row, "Percentiles") != percentile) continue;
            std::set<std::string> asked{"Percentiles"};
            for (const TimesField& field : evalscope_percentiles) {
                if (const auto figure = figure_at(row, field.path, field.exponent))
                    figures.*field.times.*statistic = figure;
                asked.emplace(field.path);
            }
            const bool shown =
                figures.time_per_output_token.*statistic > 0 || figure_at(row, "TPOT (s)") > 0;
            streamed = streamed || (shown && figures.time_to_first_token.*statistic !=
                                                 figures.latency.*statistic);
            for (const auto& [name, text] : scalars_of(row, asked))
                result.unread[name + " " + percentile] = text;
        }
    if (!streamed)
        figures.time_to_first_token = figures.time_per_output_token =
            figures.inter_token_latency = {};
    if (!has_figures(figures)) return {};
    return {result};
}

// -------------------------------------------------------------------------------------------------
// InferenceX (InferenceMAX before): agg_*.json of one run, or agg_bmk.json, a list of them. A row
// of
// a fixed load is made of vLLM's result: times in seconds, tokens a second of one GPU. A row of a
// replayed agent is made of AIPerf's records and nests its figures.

constexpr std::array<TimesField, 4> inferencex_times{{{"*_ttft", &B::time_to_first_token},
                                                      {"*_tpot", &B::time_per_output_token},
                                                      {"*_itl", &B::inter_token_latency},
                                                      {"*_e2el", &B::latency}}};
/// Its `itl` is the same as `tpot`, AIPerf's.
constexpr std::array<TimesField, 3> agent_times{
    {{"request_metrics>latency>ttft>*", &B::time_to_first_token},
     {"request_metrics>latency>tpot>*", &B::time_per_output_token},
     {"request_metrics>latency>e2el>*", &B::latency}}};
constexpr std::array<FigureField, 5> agent_figures{
    {{"num_requests_successful", &B::successful_requests},
     {"request_metrics>throughput>duration_seconds", &B::duration_seconds},
     {"request_metrics>throughput>input>tokens_per_second", &B::input_tokens_per_second},
     {"request_metrics>throughput>output>tokens_per_second", &B::output_tokens_per_second},
     {"request_metrics>throughput>total>tokens_per_second", &B::total_tokens_per_second}}};
constexpr StatisticNames fixed_statistics{"mean", "median", "p90", "p95", "p99", "std"};
constexpr StatisticNames agent_statistics{"mean", "p50", "p90", "p95", "p99", "std"};

bool is_agent_row(const Json& row) { return node_at(row, "request_metrics>latency") != nullptr; }
bool is_inferencex_row(const Json& row) {
    const Json* hardware = node_at(row, "hw");
    const auto number = [&](const char* key) {
        const Json* node = node_at(row, key);
        return node != nullptr && node->is_number();
    };
    return hardware != nullptr && hardware->is_string() && number("conc") &&
           (number("tput_per_gpu") || is_agent_row(row));
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
    PublishedResult result = result_of_tool("inferencex");
    BenchmarkResult& figures = result.result;
    std::set<std::string> asked{"model", "num_requests_successful", "num_requests_total"};
    const bool agent = is_agent_row(row);  // its `conc` counts agents, each with several in flight
    if (agent) {
        read_fields(row, agent_figures, figures);
        read_fields(row, agent_times, agent_statistics, figures);
        // Of the records that were dropped some are of the warm-up, with and without errors; the
        // others failed.
        const auto dropped = figure_at(row, "request_accounting>records_dropped_total"),
                   warm_up = figure_at(row, "request_accounting>records_warmup_dropped");
        if (dropped && warm_up && *dropped >= *warm_up)
            figures.failed_requests = *dropped - *warm_up;
        const auto total = [&](const char* path) {
            return total_of(figure_at(row, path), figures.successful_requests);
        };
        figures.input_tokens = total("request_metrics>tokens>input>mean");
        figures.output_tokens = total("request_metrics>tokens>output_actual>mean");
    } else {
        read_rates(row, figures, asked);
        figures.maximum_concurrency = figure_at(row, "conc");
        read_fields(row, inferencex_times, fixed_statistics, figures);
        asked.insert("conc");
        for (const std::string_view name : fixed_statistics)  // intvty: reciprocals of tpot
            for (const char* family : {"_ttft", "_tpot", "_itl", "_e2el", "_intvty"})
                asked.insert(std::string(name) + family);
    }
    // The engine's flags are in a recipe elsewhere.
    result.model = text_at(row, "model");
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
    result.unread = scalars_of(row, asked);
    if (agent)
        for (const auto& [name, path] :
             {std::pair{"qps mean", "request_metrics>qps>mean"},
              {"theoretical_cache_hit_rate", "request_metrics>cache>theoretical_cache_hit_rate"},
              {"gpu_cache_hit_rate", "server_metrics>cache>gpu_cache_hit_rate"},
              {"warm-up requests", "request_accounting>records_warmup_dropped"}})
            if (const Json* node = node_at(row, path))
                if (const auto text = scalar_text(*node)) result.unread[name] = *text;
    return result;
}

std::vector<PublishedResult> read_inferencex(const Json& value) {
    if (!value.is_array()) return {read_inferencex_row(value)};
    std::vector<PublishedResult> results;
    for (const Json& row : value) {
        if (!is_inferencex_row(row))
            throw ParseError("value " + std::to_string(results.size() + 1) +
                             " of the list is no row of InferenceX: hw, conc and tput_per_gpu " +
                             "or request_metrics wanted, as in those before it");
        results.push_back(read_inferencex_row(row));
    }
    return results;
}

// -------------------------------------------------------------------------------------------------
// llama-bench: prompts alone, answers alone, or both, of one stream. No server and no requests:
// rates and lengths only.

bool is_bench_test(const Json& value) {
    return value.is_object() && value.contains("avg_ts") && value.contains("n_prompt") &&
           value.contains("n_gen");
}

PublishedResult read_bench_test(const Json& value) {
    PublishedResult result = result_of_tool("llama-bench");
    if (const Json* build = node_at(value, "build_number"); build != nullptr && build->is_number())
        result.tool_version = "b" + scalar_text(*build).value_or("");
    result.model = text_at(value, "model_filename");
    if (result.model.empty()) result.model = text_at(value, "model_type");
    result.date = text_at(value, "test_time");
    BenchmarkResult& figures = result.result;
    double prompt = setting_at(value, "n_prompt").value_or(0);
    const double answer = setting_at(value, "n_gen").value_or(0);
    auto depth = setting_at(value, "n_depth");
    // ik_llama.cpp's tests of answers behind a prompt, which is not measured.
    if (const std::string test = text_at(value, "test");
        test.starts_with("tg") && test.find("@pp") != std::string::npos)
        depth = std::exchange(prompt, 0);
    if (prompt > 0) figures.input_tokens = prompt;
    if (answer > 0) figures.output_tokens = answer;
    figures.duration_seconds = figure_at(value, "avg_ns", -9);
    (prompt > 0 && answer > 0 ? figures.total_tokens_per_second
     : prompt > 0             ? figures.input_tokens_per_second
                              : figures.output_tokens_per_second) = figure_at(value, "avg_ts");
    const auto number = [](double tokens) { return short_number_text(tokens); };  // perhaps 1e308
    std::string label = (prompt > 0 ? "pp" + number(prompt) : "") +
                        (prompt > 0 && answer > 0 ? "+" : "") +
                        (answer > 0 ? "tg" + number(answer) : "");
    // Behind a context of so many tokens, which are in no rate and no time.
    if (depth && *depth > 0) label += " @ d" + number(*depth);
    result.labels.push_back(label);
    result.unread = scalars_of(value, {"n_prompt", "n_gen", "avg_ts", "avg_ns", "model_filename",
                                       "test_time", "build_number"});
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

template <bool (*is_row)(const Json&)>
bool is_row_or_list(const Json& value) {
    return is_row(value) || (value.is_array() && !value.empty() && is_row(value.front()));
}

constexpr std::array<ResultFormat, 5> other_known_formats{
    {{"guidellm", "benchmarks with metrics.request_latency and metrics.time_to_first_token_ms",
      is_guidellm, read_guidellm},
     {"llama-bench", "avg_ts, n_prompt, n_gen", is_row_or_list<is_bench_test>, read_llama_bench},
     {"evalscope", "Concurrency, Success Requests and Avg Latency (s), or their older names",
      is_evalscope, read_evalscope},
     {"evalscope", "a list of rows with Percentiles and Latency (s)",
      [](const Json& value) {
          return value.is_array() && !value.empty() &&
                 node_at(value.front(), "Percentiles") != nullptr &&
                 node_at(value.front(), "Latency (s)") != nullptr;
      },
      read_evalscope_percentiles},
     {"inferencex", "hw, conc, and tput_per_gpu or request_metrics.latency",
      is_row_or_list<is_inferencex_row>, read_inferencex}}};

}  // namespace

const std::span<const ResultFormat> other_formats(other_known_formats);

}  // namespace servetune
