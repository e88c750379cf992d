// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's GenAI-Perf and AIPerf write: an export of a run (JSON or a table), one object a
// metric with its unit and statistics; AIPerf's records, one object a request; its sweeps and means
// over runs.
#include "base/text.hpp"
#include "result_format.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "study/table.hpp"

#include <algorithm>
#include <cmath>
#include <regex>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using B = BenchmarkResult;

constexpr StatisticNames metric_statistics{"avg", "p50", "p90", "p95", "p99", "std"};

bool is_metric(const Json& value, std::string_view name) {
    const Json* metric = node_at(value, name);
    return metric != nullptr && metric->is_object() && metric->contains("unit") &&
           metric->contains("avg");
}

constexpr std::array<FigureRow, 5> genai_perf_figures{
    {{"request_count>avg", &B::successful_requests},
     {"request_throughput>avg", &B::requests_per_second},
     {"output_token_throughput>avg", &B::output_tokens_per_second},
     {"input_config>perf_analyzer>stimulus>concurrency", &B::maximum_concurrency},
     {"input_config>perf_analyzer>stimulus>request_rate", &B::requested_rate_per_second}}};
/// In flight over the whole window, failed requests too.
constexpr std::array<FigureRow, 10> aiperf_figures{
    {{"request_count>avg", &B::successful_requests},
     {"request_throughput>avg", &B::requests_per_second},
     {"output_token_throughput>avg", &B::output_tokens_per_second},
     {"error_request_count>avg", &B::failed_requests},
     {"effective_concurrency>avg", &B::mean_concurrency},
     {"effective_concurrency>max", &B::peak_concurrent_requests},
     {"total_isl>avg", &B::input_tokens},
     {"total_osl>avg", &B::output_tokens},
     {"total_token_throughput>avg", &B::total_tokens_per_second},
     {"goodput>avg", &B::goodput_requests_per_second}}};
constexpr std::array<TextRow, 2> aiperf_texts{
    {{"aiperf_version", &PublishedResult::tool_version}, {"start_time", &PublishedResult::date}}};
/// Names in AIPerf's records and exports. Its inter-token latency is (latency - time to first
/// token) / (tokens - 1) of each request: what we, and vLLM, call time per output token.
constexpr std::array<std::pair<std::string_view, TimeSummary B::*>, 4> metric_times{
    {{"time_to_first_token", &B::time_to_first_token},
     {"inter_token_latency", &B::time_per_output_token},
     {"inter_chunk_latency", &B::inter_token_latency},
     {"request_latency", &B::latency}}};

/// Metrics that figures are made of, or that say the same again.
constexpr std::array<std::string_view, 19> metrics_read{"request_count",
                                                        "request_throughput",
                                                        "output_token_throughput",
                                                        "request_latency",
                                                        "time_to_first_token",
                                                        "inter_token_latency",
                                                        "inter_chunk_latency",
                                                        "goodput",
                                                        "request_goodput",
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

TimeSummary metric_times_at(const Json& value, std::string_view metric) {
    const auto exponent = time_exponent_of(text_at(value, std::string(metric) + ">unit"));
    if (!exponent) return {};
    return times_at(value, std::string(metric) + ">*", metric_statistics, *exponent);
}

PublishedResult read_metrics(const Json& value, const ToolFields& fields) {
    PublishedResult result = read_fields(value, fields);
    BenchmarkResult& figures = result.result;
    for (const auto& [name, times] : metric_times) figures.*times = metric_times_at(value, name);
    // Without streaming GenAI-Perf writes the whole latency as the time to the first token.
    const Json* streaming = node_at(value, "input_config>endpoint>streaming");
    if (streaming != nullptr && *streaming == false)
        figures.time_to_first_token = figures.time_per_output_token = {};
    // A list of names, since AIPerf's configuration of 2026 a list of objects.
    for (const char* path : {"input_config>model_names", "input_config>endpoint>model_names",
                             "input_config>models>items"})
        if (const Json* models = node_at(value, path);
            models != nullptr && models->is_array() && !models->empty() && result.model.empty()) {
            result.model = text_at(models->front(), {});
            if (result.model.empty()) result.model = text_at(models->front(), "name");
        }
    if (value.is_object())
        for (const auto& [name, metric] : value.items()) {
            const bool read =
                std::find(metrics_read.begin(), metrics_read.end(), name) != metrics_read.end();
            if (read || !is_metric(value, name)) continue;
            const std::string unit = text_at(metric, "unit");
            if (const auto average = scalar_text(metric["avg"]))
                result.unread[one_line(name)] = *average + (unit.empty() ? "" : " " + unit);
        }
    return result;
}

PublishedResult read_genai_perf(const Json& value) {
    PublishedResult result =
        read_metrics(value, {.tool = "genai-perf", .figures = genai_perf_figures});
    result.result.inter_token_latency = {};
    // -1: without bounds on times.
    result.result.goodput_requests_per_second = setting_at(value, "request_goodput>avg");
    return result;
}

/// The load that was measured in the configuration of 2026: the only phase of the list that is no
/// warm-up; nullptr when there are several, as then none of them is the whole run's.
const Json* measured_phase(const Json& value) {
    const Json* phases = node_at(value, "input_config>phases");
    const Json* found = nullptr;
    if (phases != nullptr && phases->is_array())
        for (const Json& phase : *phases) {
            if (text_at(phase, "kind") == "warmup" || text_at(phase, "name") == "warmup") continue;
            if (found != nullptr) return nullptr;
            found = &phase;
        }
    return found;
}

/// The load's setting: where a sweep writes it, then in the configuration, of 2025 (`loadgen`) or
/// 2026 (`phases`).
std::optional<double> load_setting(const Json& value, const std::string& name,
                                   const std::string& name_in_phase) {
    if (const Json* swept = node_at(value, "run_info>variation_values"))
        if (swept->is_object() && swept->contains("phases.profiling." + name_in_phase))
            if (const auto figure = setting_at(*swept, "phases.profiling." + name_in_phase))
                return figure;
    if (const auto figure = setting_at(value, "input_config>loadgen>" + name)) return figure;
    const Json* phase = measured_phase(value);
    return phase == nullptr ? std::nullopt : setting_at(*phase, name_in_phase);
}

PublishedResult read_aiperf(const Json& value) {
    PublishedResult result =
        read_metrics(value, {.tool = "aiperf", .figures = aiperf_figures, .texts = aiperf_texts});
    BenchmarkResult& figures = result.result;
    // The count is left out of a run without errors; two other fields then say that there were
    // none. A run without successes has no count of them either.
    const Json* errors = node_at(value, "error_summary");
    const auto rate = figure_at(value, "request_error_rate>avg");
    const bool none = (errors != nullptr && errors->is_array() && errors->empty()) || rate == 0;
    if (!figures.failed_requests && none) figures.failed_requests = 0;
    if (!figures.successful_requests && rate == 100) figures.successful_requests = 0;
    figures.duration_seconds = metric_times_at(value, "benchmark_duration").mean;
    figures.maximum_concurrency = load_setting(value, "concurrency", "concurrency");
    figures.requested_rate_per_second = load_setting(value, "request_rate", "rate");
    if (const Json* cancelled = node_at(value, "was_cancelled");
        cancelled != nullptr && *cancelled == true)
        result.unread["was_cancelled"] = "true";
    // 1.0 to 1.5 add fields, and rename only those of GPUs.
    const std::string schema = text_at(value, "schema_version");
    if (const auto number = real_of(schema); number && *number > 1.5)
        result.unread["schema_version"] = schema + ": newer than 1.5, read as 1.5";
    return result;
}

// -------------------------------------------------------------------------------------------------
// several runs: a sweep's combinations (profile_export_aiperf_sweep.json), the mean of runs of one
// (profile_export_aiperf_aggregate.json)

/// Each statistic of each metric has its mean over the runs: `{"time_to_first_token_p99": {"mean":
/// 12, "unit": "ms"}}`. Some sweeps of single runs have the metrics alone, with their averages.
PublishedResult read_means(const Json* metrics) {
    Json run = Json::object();
    if (metrics != nullptr && metrics->is_object())
        for (const auto& [name, metric] : metrics->items()) {
            const auto mean = figure_at(metric, "mean");
            const std::string unit = text_at(metric, "unit");
            if (!mean || unit.empty()) continue;
            std::string tag = name, statistic = "avg";
            for (const std::string_view ending :
                 {"_avg", "_p50", "_p90", "_p95", "_p99", "_std", "_min", "_max"})
                if (name.ends_with(ending)) {
                    tag = name.substr(0, name.size() - ending.size());
                    statistic = ending.substr(1);
                }
            run[tag]["unit"] = unit;
            run[tag][statistic] = *mean;
        }
    PublishedResult result = read_aiperf(run);
    result.unread["figures"] = "means over runs";
    return result;
}

/// One combination of a sweep, or the runs of one.
PublishedResult read_aiperf_runs(const Json& runs) {
    PublishedResult result = read_means(node_at(runs, "metrics"));
    result.tool_version = text_at(runs, "aiperf_version");
    for (const std::string count : {"num_profile_runs", "num_successful_runs"})
        if (const Json* node = node_at(runs, "metadata>" + count))
            if (const auto text = scalar_text(*node)) result.unread[count] = *text;
    const Json* parameters = node_at(runs, "parameters");
    std::map<std::string, std::string> said;
    if (parameters != nullptr && parameters->is_object())
        for (const auto& [path, parameter] : parameters->items()) {
            // `concurrency`, or its path in the configuration.
            const std::string leaf = path.substr(path.rfind('.') + 1);
            const auto number = figure_at(parameter, {});
            if (leaf == "concurrency" && number) result.result.maximum_concurrency = number;
            if ((leaf == "request_rate" || leaf == "rate") && number)
                result.result.requested_rate_per_second = number;
            if (const auto text = scalar_text(parameter))
                result.unread[one_line(path)] = said[leaf] = *text;
        }
    if (!said.empty()) result.labels.push_back(one_line(settings_text(said)));
    return result;
}

bool is_genai_perf(const Json& value) {
    return is_metric(value, "request_throughput") && is_metric(value, "request_latency");
}

constexpr std::array<ResultFormat, 4> known_aiperf_formats{
    {{"aiperf", "aggregation_type sweep, and per_combination_metrics",
      [](const Json& value) {
          const Json* combinations = node_at(value, "per_combination_metrics");
          return combinations != nullptr && combinations->is_array() &&
                 text_at(value, "aggregation_type") == "sweep";
      },
      [](const Json& value) {
          std::vector<PublishedResult> results;
          for (const Json& combination : value["per_combination_metrics"])
              results.push_back(read_aiperf_runs(combination));
          return results;
      }},
     {"aiperf", "metadata.aggregation_type confidence, and metrics",
      [](const Json& value) {
          return text_at(value, "metadata>aggregation_type") == "confidence" &&
                 node_at(value, "metrics") != nullptr;
      },
      [](const Json& value) { return std::vector{read_aiperf_runs(value)}; }},
     {"aiperf",
      "aiperf_version, schema_version or benchmark_duration, and request_throughput with unit and "
      "avg",
      [](const Json& value) {
          bool marked = is_metric(value, "benchmark_duration");
          for (const char* key : {"aiperf_version", "schema_version", "was_cancelled"})
              marked = marked || node_at(value, key) != nullptr;
          return marked && (is_metric(value, "request_throughput") ||
                            is_metric(value, "error_request_count"));
      },
      [](const Json& value) { return std::vector{read_aiperf(value)}; }},
     {"genai-perf", "request_throughput and request_latency with unit and avg", is_genai_perf,
      [](const Json& value) { return std::vector{read_genai_perf(value)}; }}}};

// -------------------------------------------------------------------------------------------------
// tables: a row a metric with its statistics, below it a row a single value, below these the GPUs'
// telemetry; the names are those for people

/// The name in JSON and the unit of `Time to First Token (ms)`.
std::pair<std::string, std::string> metric_of_title(std::string_view title) {
    std::string_view unit;
    if (const auto open = title.rfind(" (");
        open != std::string_view::npos && title.ends_with(')')) {
        unit = title.substr(open + 2, title.size() - open - 3);
        title = title.substr(0, open);
    }
    std::string name = lower_case(std::string(title));
    std::replace(name.begin(), name.end(), ' ', '_');
    for (const auto& [spelled, in_json] :
         {std::pair{"total_input_sequence_length", "total_isl"},
          {"total_output_sequence_length", "total_osl"},
          {"minimum_request_timestamp", "min_request_timestamp"},
          {"maximum_response_timestamp", "max_response_timestamp"}})
        if (name == spelled) name = in_json;
    return {name, std::string(unit)};
}

/// A number with or without commas between its thousands.
std::optional<double> number_with_commas(std::string cell) {
    static const std::regex thousands(R"(\d{1,3}(,\d{3})+(\.\d*)?)");
    constexpr std::size_t longest = 40;  // std::regex recurses
    if (cell.size() < longest && std::regex_match(cell, thousands)) std::erase(cell, ',');
    return real_of(cell);
}

}  // namespace

const std::span<const ResultFormat> aiperf_formats(known_aiperf_formats);

bool is_perf_table(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const std::string_view header = text.substr(0, text.find_first_of("\r\n"));
    if (header == "Metric,Value") return text.find("Request Count") != std::string_view::npos;
    return header.starts_with("Metric,avg,sum,") || header.starts_with("Metric,avg,min,max,");
}

PublishedResult read_perf_table(std::string_view text, const std::string& name) {
    Json metrics = Json::object();
    std::vector<std::string> header;
    std::size_t rows_of_gpus = 0;
    const std::vector<CsvRow> rows = parse_csv(text, name);
    const std::vector<std::string>& first = rows.front().cells;
    const bool genai_perf = first.size() > 2 && first[2] == "min" && first.back() != "std";
    for (const CsvRow& row : rows) {
        const std::string& title = row.cells.front();
        if (title == "Metric" || title == "Endpoint") {
            header = row.cells;
            continue;
        }
        const std::vector<std::string>& cells = cells_of(row, header.size(), name);
        if (header.front() == "Endpoint" || (header.size() > 1 && header[1] == "GPU")) {
            ++rows_of_gpus;
            continue;
        }
        const auto fail = [&](const std::string& message) {
            throw ParseError(name + ":" + std::to_string(row.line) + ": '" + title + "'" + message);
        };
        const auto [tag, unit] = metric_of_title(title);
        if (metrics.contains(tag)) fail(" is there twice");
        Json& metric = metrics[tag] = {{"unit", unit}};
        for (std::size_t i = 1; i < header.size(); ++i) {
            const std::string said = lower_case(cells[i]);
            if (said.empty() || said == "n/a" || said == "nan" || said == "none") continue;
            const auto number = number_with_commas(cells[i]);
            if (!number)
                fail(", " + header[i] + ": a number wanted, got '" + one_line(cells[i]) + "'");
            metric[header[i] == "Value" ? "avg" : header[i]] = *number;
        }
    }
    if (genai_perf
            ? !is_genai_perf(metrics)
            : !is_metric(metrics, "request_count") && !is_metric(metrics, "error_request_count"))
        throw ParseError(name + (genai_perf ? ": a table of GenAI-Perf without 'Request "
                                              "Throughput' or 'Request Latency'"
                                            : ": a table of AIPerf without a number of requests: "
                                              "'Request Count' or 'Error Request Count' wanted"));
    // GenAI-Perf gives the latency itself as the time to the first token where answers do not
    // stream.
    const bool whole = genai_perf && metrics.contains("time_to_first_token") &&
                       metrics["time_to_first_token"] == metrics["request_latency"];
    if (whole) {
        metrics.erase("time_to_first_token");
        metrics.erase("inter_token_latency");
    }
    PublishedResult result = genai_perf ? read_genai_perf(metrics) : read_aiperf(metrics);
    if (whole)
        result.unread["time_to_first_token"] = "the latency itself: the answers did not stream";
    if (rows_of_gpus > 0)
        result.unread["telemetry of GPUs"] = std::to_string(rows_of_gpus) + " rows";
    return result;
}

// -------------------------------------------------------------------------------------------------
// records

namespace {

std::optional<std::int64_t> nanoseconds_at(const Json& record, std::string_view path) {
    const Json* value = node_at(record, path);
    if (value == nullptr || !value->is_number_integer()) return std::nullopt;
    if (value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    const auto number = value->get<std::int64_t>();
    return number < 0 ? std::nullopt : std::optional(number);
}

}  // namespace

bool AiperfRecords::recognises(const Json& value) {
    const Json* metrics = node_at(value, "metrics");
    return metrics != nullptr && metrics->is_object() &&
           nanoseconds_at(value, "metadata>request_start_ns") &&
           nanoseconds_at(value, "metadata>request_end_ns");
}

void AiperfRecords::add(const Json& record) {
    const std::string phase = text_at(record, "metadata>benchmark_phase");
    if (!phase.empty() && phase != "profiling") {
        ++warm_up_;
        return;
    }
    const Json* error = node_at(record, "error");
    if (error != nullptr && !error->is_null()) {
        ++failures_;
        const Json* cancelled = node_at(record, "metadata>was_cancelled");
        if (cancelled != nullptr && *cancelled == true) ++cancelled_;
        return;
    }
    ++successes_;
    const auto start = nanoseconds_at(record, "metadata>request_start_ns"),
               end = nanoseconds_at(record, "metadata>request_end_ns");
    if (start && (!first_start_ || *start < *first_start_)) first_start_ = start;
    if (end && (!last_end_ || *end > *last_end_)) last_end_ = end;
    for (std::size_t i = 0; i < metric_times.size(); ++i) {  // one time, or several
        const std::string metric = "metrics>" + std::string(metric_times[i].first);
        const Json* value = node_at(record, metric + ">value");
        const auto exponent = time_exponent_of(text_at(record, metric + ">unit"));
        if (value == nullptr || !exponent) continue;
        const auto add_time = [&](const Json& one) {
            if (const auto figure = figure_at(one, {}, *exponent)) times_[i].push_back(*figure);
        };
        if (value->is_array()) std::for_each(value->begin(), value->end(), add_time);
        else add_time(*value);
    }
    const auto count = [&](const std::string& metric, Tokens& tokens) {
        const auto value = figure_at(record, metric + ">value");
        if (!value || text_at(record, metric + ">unit") != "tokens") return;
        tokens.sum += *value;
        ++tokens.counted;
    };
    count("metrics>input_sequence_length", input_);
    count("metrics>output_sequence_length", output_);
}

PublishedResult AiperfRecords::result() const {
    if (successes_ + failures_ == 0)
        throw ParseError(
            "records of AIPerf, all of them of its warm-up: those of the measurement wanted");
    PublishedResult result;
    result.tool = "aiperf";
    result.arguments_unknown = true;
    BenchmarkResult& figures = result.result;
    figures.successful_requests = static_cast<double>(successes_);
    figures.failed_requests = static_cast<double>(failures_);
    if (first_start_ && last_end_)
        figures.duration_seconds = static_cast<double>(*last_end_ - *first_start_) / 1e9;
    const auto total = [&](const Tokens& tokens) {
        return successes_ > 0 && tokens.counted == successes_ && std::isfinite(tokens.sum)
                   ? std::optional(tokens.sum)
                   : std::nullopt;
    };
    figures.input_tokens = total(input_);
    figures.output_tokens = total(output_);
    const auto a_second = [&](const std::optional<double>& amount) -> std::optional<double> {
        if (!amount || !figures.duration_seconds) return std::nullopt;
        const double rate = *amount / *figures.duration_seconds;
        return std::isfinite(rate) ? std::optional(rate) : std::nullopt;
    };
    figures.requests_per_second = a_second(figures.successful_requests);
    figures.output_tokens_per_second = a_second(figures.output_tokens);
    if (figures.input_tokens && figures.output_tokens)
        figures.total_tokens_per_second = a_second(*figures.input_tokens + *figures.output_tokens);
    for (std::size_t i = 0; i < metric_times.size(); ++i)
        figures.*metric_times[i].second = summary_of_times(times_[i]);
    if (warm_up_ > 0) result.unread["warm-up requests"] = std::to_string(warm_up_);
    if (cancelled_ > 0)
        result.unread["cancelled requests"] = std::to_string(cancelled_) + " of the failed";
    return result;
}

}  // namespace servetune
