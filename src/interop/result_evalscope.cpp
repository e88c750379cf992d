// SPDX-License-Identifier: Apache-2.0
// Summaries of `evalscope perf` (benchmark_summary.json), and its table of percentiles
// (benchmark_percentile.json). Names and units changed: seconds until 1.6, milliseconds from 1.7
// for times of tokens. The unit is in the name.
#include "result_formats.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// A figure under the names that it had, newest first.
struct Spelling {
    const char* name;
    int exponent;
};
template <std::size_t count>
std::optional<double> first_of(ResultFields& fields, const std::array<Spelling, count>& spellings) {
    std::optional<double> found;
    for (const auto& [name, exponent] : spellings)
        if (const auto figure = fields.figure(name, exponent); figure && !found) found = figure;
    return found;
}

constexpr std::array<Spelling, 2> duration_names{
    {{"Test Duration (s)", 0}, {"Time taken for tests (s)", 0}}};
constexpr std::array<Spelling, 2> concurrency_names{
    {{"Concurrency", 0}, {"Number of concurrency", 0}}};
constexpr std::array<Spelling, 2> rate_names{
    {{"Request Rate (req/s)", 0}, {"Request rate (req/s)", 0}}};
constexpr std::array<Spelling, 2> requests_names{{{"Total Requests", 0}, {"Total requests", 0}}};
constexpr std::array<Spelling, 2> successes_names{
    {{"Success Requests", 0}, {"Succeed requests", 0}}};
constexpr std::array<Spelling, 2> failures_names{{{"Failed Requests", 0}, {"Failed requests", 0}}};
constexpr std::array<Spelling, 3> request_rate_names{
    {{"Req Throughput (req/s)", 0}, {"Request throughput (req/s)", 0}, {"Average QPS", 0}}};
constexpr std::array<Spelling, 3> output_rate_names{{{"Output Throughput (tok/s)", 0},
                                                     {"Output token throughput (tok/s)", 0},
                                                     {"Throughput(average tokens/s)", 0}}};
constexpr std::array<Spelling, 2> total_rate_names{
    {{"Total Throughput (tok/s)", 0}, {"Total token throughput (tok/s)", 0}}};
constexpr std::array<Spelling, 2> latency_names{
    {{"Avg Latency (s)", 0}, {"Average latency (s)", 0}}};
constexpr std::array<Spelling, 3> first_token_names{
    {{"Avg TTFT (ms)", -3}, {"TTFT (ms)", -3}, {"Average time to first token (s)", 0}}};
constexpr std::array<Spelling, 3> per_token_names{
    {{"Avg TPOT (ms)", -3}, {"TPOT (ms)", -3}, {"Average time per output token (s)", 0}}};
constexpr std::array<Spelling, 3> gaps_names{
    {{"Avg ITL (ms)", -3}, {"ITL (ms)", -3}, {"Average inter-token latency (s)", 0}}};
constexpr std::array<Spelling, 2> prompt_length_names{
    {{"Avg Input Tokens", 0}, {"Average input tokens per request", 0}}};
constexpr std::array<Spelling, 2> answer_length_names{
    {{"Avg Output Tokens", 0}, {"Average output tokens per request", 0}}};

bool has_any(const Json& value, const auto& spellings) {
    return value.is_object() &&
           std::any_of(spellings.begin(), spellings.end(),
                       [&](const Spelling& one) { return value.contains(one.name); });
}

bool is_evalscope(const Json& value) {
    return has_any(value, duration_names) && has_any(value, concurrency_names) &&
           has_any(value, successes_names) && has_any(value, latency_names);
}

/// The file does not say which version wrote it; its keys do, roughly.
std::string version_by_keys(const Json& value) {
    if (value.contains("Stream Requests")) return "not in the file; 1.10 or later by its keys";
    if (value.contains("Test Duration (s)")) return "not in the file; 1.7 or later by its keys";
    if (has_any(value, gaps_names)) return "not in the file; 0.17.1 to 1.6 by its keys";
    return "not in the file; before 0.17.1 by its keys";
}

std::vector<PublishedResult> read_evalscope(const Json& value) {
    ResultFields fields(value);
    PublishedResult result;
    result.tool = "evalscope";
    result.arguments_unknown = true;
    BenchmarkResult& figures = result.result;
    figures.duration_seconds = first_of(fields, duration_names);
    figures.maximum_concurrency = first_of(fields, concurrency_names);  // -1: no cap
    figures.requested_rate_per_second = first_of(fields, rate_names);   // -1: all at once
    for (auto* load : {&figures.maximum_concurrency, &figures.requested_rate_per_second})
        if (*load <= 0) load->reset();
    figures.successful_requests = first_of(fields, successes_names);
    figures.failed_requests = first_of(fields, failures_names);
    const auto all = first_of(fields, requests_names);
    if (!figures.failed_requests) figures.requested_requests = all;
    figures.requests_per_second = first_of(fields, request_rate_names);
    figures.output_tokens_per_second = first_of(fields, output_rate_names);
    figures.total_tokens_per_second = first_of(fields, total_rate_names);
    const double answered = figures.successful_requests.value_or(0);
    const auto total = [&](const std::optional<double>& mean) -> std::optional<double> {
        const double tokens =
            std::round(mean.value_or(0) * answered);  // the mean has four decimals
        return tokens != 0 && std::isfinite(tokens) ? std::optional(tokens) : std::nullopt;
    };
    figures.input_tokens = total(first_of(fields, prompt_length_names));
    figures.output_tokens = total(first_of(fields, answer_length_names));
    // Means are -1 where nothing succeeded, 0 where nothing was measured.
    const auto mean = [&](const auto& spellings) {
        const auto figure = first_of(fields, spellings);
        return figure != 0 && answered > 0 ? figure : std::nullopt;
    };
    figures.latency.mean = mean(latency_names);
    const auto first = mean(first_token_names), token = mean(per_token_names);
    figures.inter_token_latency.mean = mean(gaps_names);
    // Before it had gaps its time per token was another: of the whole run, or of chunks without the
    // first and the last.
    const bool known_meaning = has_any(value, gaps_names);
    if (known_meaning) figures.time_per_output_token.mean = token;
    // An answer that was not streamed has its latency as the time to the first token, and no time
    // per token.
    const bool streamed = known_meaning ? token.has_value() : first != figures.latency.mean;
    if (streamed) figures.time_to_first_token.mean = first;
    result.unread = fields.unread();
    if (!known_meaning && token)
        result.unread["time per output token"] =
            text_of(*token) + " s, not (latency - first) / (tokens - 1)";
    result.unread["version"] = version_by_keys(value);
    return {result};
}

// -------------------------------------------------------------------------------------------------
// percentiles

constexpr std::array<Spelling, 1> row_latency_names{{{"Latency (s)", 0}}};
constexpr std::array<Spelling, 2> row_first_token_names{{{"TTFT (ms)", -3}, {"TTFT (s)", 0}}};
constexpr std::array<Spelling, 1> row_per_token_names{{{"TPOT (ms)", -3}}};
constexpr std::array<Spelling, 2> row_gaps_names{{{"ITL (ms)", -3}, {"ITL (s)", 0}}};

bool is_percentile_row(const Json& row) {
    return row.is_object() && row.contains("Percentiles") && has_any(row, row_latency_names);
}
bool is_evalscope_percentiles(const Json& value) {
    return value.is_array() && !value.empty() && is_percentile_row(value.front());
}

/// The order statistic at `count * p / 100`, not a value between two. Without the counts and means
/// of the summary. In a file with seconds (before 1.7) the time per token may be the one from
/// before 0.17.1, so it is not read.
std::vector<PublishedResult> read_evalscope_percentiles(const Json& value) {
    PublishedResult result;
    result.tool = "evalscope";
    result.arguments_unknown = true;
    BenchmarkResult& figures = result.result;
    constexpr std::array<std::pair<std::string_view, std::optional<double> TimeSummary::*>, 4>
        wanted{{{"50%", &TimeSummary::p50},
                {"90%", &TimeSummary::p90},
                {"95%", &TimeSummary::p95},
                {"99%", &TimeSummary::p99}}};
    bool streamed = false;
    for (const auto& [percentile, figure] : wanted)
        for (const Json& row : value) {
            if (text_at(row, {"Percentiles"}) != percentile) continue;
            ResultFields fields(row);
            (void)fields.text("Percentiles");
            figures.latency.*figure = first_of(fields, row_latency_names);
            figures.time_to_first_token.*figure = first_of(fields, row_first_token_names);
            figures.time_per_output_token.*figure = first_of(fields, row_per_token_names);
            figures.inter_token_latency.*figure = first_of(fields, row_gaps_names);
            const bool shown =
                figures.time_per_output_token.*figure > 0 || figure_at(row, {"TPOT (s)"}) > 0;
            streamed = streamed ||
                       (shown && figures.time_to_first_token.*figure != figures.latency.*figure);
            for (const auto& [name, text] : fields.unread())
                result.unread[name + " " + std::string(percentile)] = text;
        }
    if (!streamed)
        figures.time_to_first_token = figures.time_per_output_token =
            figures.inter_token_latency = {};
    if (!has_figures(figures)) return {};
    return {result};
}

}  // namespace

const ResultFormat evalscope_format{
    "evalscope", "Concurrency, Success Requests and Avg Latency (s), or their older names",
    is_evalscope, read_evalscope};
const ResultFormat evalscope_percentiles_format{
    "evalscope", "a list of rows with Percentiles and Latency (s)", is_evalscope_percentiles,
    read_evalscope_percentiles};

}  // namespace servetune
