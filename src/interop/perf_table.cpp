// SPDX-License-Identifier: Apache-2.0
// The tables of AIPerf and GenAI-Perf: a row a metric with its statistics, below it a row a single
// value, below these the GPUs' telemetry. The names are those for people; the JSON exports have the
// metrics' tags.
#include "perf_table.hpp"

#include "aiperf_metrics.hpp"
#include "base/lower_case.hpp"
#include "result_formats.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"
#include "study/table.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace servetune {
namespace {

/// Titles of metrics, in lower case: GenAI-Perf has `Time To`, AIPerf `Time to`. Beside them their
/// tags in the JSON.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> tags{
    {{"request count", "request_count"},
     {"request throughput", "request_throughput"},
     {"output token throughput", "output_token_throughput"},
     {"request latency", "request_latency"},
     {"time to first token", "time_to_first_token"},
     {"inter token latency", "inter_token_latency"},
     {"inter chunk latency", "inter_chunk_latency"},
     {"goodput", "goodput"},
     {"request goodput", "request_goodput"},
     {"error request count", "error_request_count"},
     {"request error rate", "request_error_rate"},
     {"benchmark duration", "benchmark_duration"},
     {"minimum request timestamp", "min_request_timestamp"},
     {"maximum response timestamp", "max_response_timestamp"},
     {"total input sequence length", "total_isl"},
     {"total output sequence length", "total_osl"},
     {"total token throughput", "total_token_throughput"},
     {"effective concurrency", "effective_concurrency"}}};

std::string_view first_line(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    text = text.substr(0, text.find('\n'));
    return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

/// GenAI-Perf gives the latency itself as the time to the first token where answers do not stream.
bool drop_times_of_no_stream(nlohmann::json& metrics) {
    const auto first = metrics.find("time_to_first_token");
    const auto whole = metrics.find("request_latency");
    if (first == metrics.end() || whole == metrics.end() || *first != *whole) return false;
    metrics.erase("time_to_first_token");
    metrics.erase("inter_token_latency");
    return true;
}

}  // namespace

std::pair<std::string, std::string> perf_tag_and_unit(std::string_view title) {
    std::string_view unit;
    if (const auto open = title.rfind(" (");
        open != std::string_view::npos && title.ends_with(')')) {
        unit = title.substr(open + 2, title.size() - open - 3);
        title = title.substr(0, open);
    }
    const std::string said = lower_case(std::string(title));
    const auto known =
        std::find_if(tags.begin(), tags.end(), [&](const auto& tag) { return tag.first == said; });
    return {std::string(known == tags.end() ? title : known->second), std::string(unit)};
}

std::optional<double> perf_number(std::string_view cell) {
    std::string digits;
    std::size_t since_comma = 0;
    bool has_comma = false;
    const std::string_view whole = cell.substr(0, cell.find('.'));
    for (const char c : whole) {
        if (c == ',') {
            if (digits.empty() || (has_comma ? since_comma != 3 : since_comma > 3))
                return std::nullopt;
            has_comma = true;
            since_comma = 0;
            continue;
        }
        digits += c;
        ++since_comma;
    }
    if (has_comma && since_comma != 3) return std::nullopt;
    return real_of(digits + std::string(cell.substr(whole.size())));
}

PublishedResult perf_result(nlohmann::json metrics, bool genai_perf) {
    const bool streamed = !genai_perf || !drop_times_of_no_stream(metrics);
    PublishedResult result =
        genai_perf ? read_genai_perf_metrics(metrics) : read_aiperf_metrics(metrics);
    if (!streamed)
        result.unread["time_to_first_token"] = "the latency itself: the answers did not stream";
    return result;
}

bool is_perf_table(std::string_view text) {
    const std::string_view header = first_line(text);
    if (header == "Metric,Value") return text.find("Request Count") != std::string_view::npos;
    return header.starts_with("Metric,avg,sum,") || header.starts_with("Metric,avg,min,max,");
}

PublishedResult read_perf_table(std::string_view text, const std::string& name) {
    auto metrics = nlohmann::json::object();
    std::vector<std::string> header;
    std::size_t rows_of_gpus = 0;
    const std::string_view first = first_line(text);
    const bool genai_perf = first.starts_with("Metric,avg,min,max,") && !first.ends_with(",std");
    for (const CsvRow& row : parse_csv(text, name)) {
        const std::string where = name + ":" + std::to_string(row.line) + ": ";
        const std::string& title = row.cells.front();
        if (title == "Metric" || title == "Endpoint") {
            header = row.cells;
            continue;
        }
        if (row.cells.size() != header.size())
            throw ParseError(where + std::to_string(header.size()) + " cells wanted, got " +
                             std::to_string(row.cells.size()));
        if (header.front() == "Endpoint" || (header.size() > 1 && header[1] == "GPU")) {
            ++rows_of_gpus;
            continue;
        }
        const auto [tag, unit] = perf_tag_and_unit(title);
        if (metrics.contains(tag)) throw ParseError(where + "'" + title + "' is there twice");
        auto& metric = metrics[tag] = {{"unit", unit}};
        for (std::size_t i = 1; i < header.size(); ++i) {
            const std::string said = lower_case(row.cells[i]);
            if (said.empty() || said == "n/a" || said == "nan" || said == "none") continue;
            const auto number = perf_number(row.cells[i]);
            if (!number)
                throw ParseError(where + "'" + title + "', " + header[i] +
                                 ": a number wanted, got '" + one_line(row.cells[i]) + "'");
            metric[header[i] == "Value" ? "avg" : header[i]] = *number;
        }
    }
    if (genai_perf) {
        if (!is_metric(metrics, "request_throughput") || !is_metric(metrics, "request_latency"))
            throw ParseError(
                name + ": a table of GenAI-Perf without 'Request Throughput' or 'Request Latency'");
    } else if (!is_metric(metrics, "request_count") && !is_metric(metrics, "error_request_count")) {
        throw ParseError(name +
                         ": a table of AIPerf without a number of requests: 'Request Count' or "
                         "'Error Request Count' wanted");
    }
    PublishedResult result = perf_result(std::move(metrics), genai_perf);
    if (rows_of_gpus > 0)
        result.unread["telemetry of GPUs"] = std::to_string(rows_of_gpus) + " rows";
    return result;
}

}  // namespace servetune
