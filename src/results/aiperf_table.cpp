// SPDX-License-Identifier: Apache-2.0
// AIPerf's table (profile_export_aiperf.csv): a row a metric with its statistics, below it a row a single value, below
// these the GPUs' telemetry. The names are those for people; the JSON export has the metrics' tags.
#include "aiperf_table.hpp"

#include "aiperf_metrics.hpp"
#include "result_formats.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/lower_case.hpp"
#include "servetune/io/table.hpp"
#include "servetune/space/value.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace servetune {
namespace {

/// Titles of AIPerf's metrics, and their tags in its JSON.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> tags{{{"Request Count", "request_count"},
                                                                              {"Request Throughput", "request_throughput"},
                                                                              {"Output Token Throughput", "output_token_throughput"},
                                                                              {"Request Latency", "request_latency"},
                                                                              {"Time to First Token", "time_to_first_token"},
                                                                              {"Inter Token Latency", "inter_token_latency"},
                                                                              {"Inter Chunk Latency", "inter_chunk_latency"},
                                                                              {"Goodput", "goodput"},
                                                                              {"Error Request Count", "error_request_count"},
                                                                              {"Request Error Rate", "request_error_rate"},
                                                                              {"Benchmark Duration", "benchmark_duration"},
                                                                              {"Minimum Request Timestamp", "min_request_timestamp"},
                                                                              {"Maximum Response Timestamp", "max_response_timestamp"},
                                                                              {"Total Input Sequence Length", "total_isl"},
                                                                              {"Total Output Sequence Length", "total_osl"},
                                                                              {"Total Token Throughput", "total_token_throughput"},
                                                                              {"Effective Concurrency", "effective_concurrency"}}};

/// `Request Latency (ms)`: its tag, or its title where we have no figure for it, and its unit.
std::pair<std::string, std::string> tag_and_unit(std::string_view title) {
    std::string_view unit;
    if (const auto open = title.rfind(" ("); open != std::string_view::npos && title.ends_with(')')) {
        unit = title.substr(open + 2, title.size() - open - 3);
        title = title.substr(0, open);
    }
    const auto known = std::find_if(tags.begin(), tags.end(), [&](const auto& tag) { return tag.first == title; });
    return {std::string(known == tags.end() ? title : known->second), std::string(unit)};
}

std::string_view first_line(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    text = text.substr(0, text.find('\n'));
    return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

}  // namespace

bool is_aiperf_table(std::string_view text) {
    const std::string_view header = first_line(text);
    if (header == "Metric,Value") return text.find("Request Count,") != std::string_view::npos;
    return header.starts_with("Metric,avg,") && header.ends_with(",std");
}

PublishedResult read_aiperf_table(std::string_view text, const std::string& name) {
    auto metrics = nlohmann::json::object();
    std::vector<std::string> header;
    std::size_t rows_of_gpus = 0;
    for (const CsvRow& row : parse_csv(text, name)) {
        const std::string where = name + ":" + std::to_string(row.line) + ": ";
        const std::string& first = row.cells.front();
        if (first == "Metric" || first == "Endpoint") {
            header = row.cells;
            continue;
        }
        if (row.cells.size() != header.size())
            throw ParseError(where + std::to_string(header.size()) + " cells wanted, got " + std::to_string(row.cells.size()));
        if (header.front() == "Endpoint") {
            ++rows_of_gpus;
            continue;
        }
        const auto [tag, unit] = tag_and_unit(first);
        if (metrics.contains(tag)) throw ParseError(where + "'" + first + "' is there twice");
        auto& metric = metrics[tag] = {{"unit", unit}};
        for (std::size_t i = 1; i < header.size(); ++i) {
            const std::string said = lower_case(row.cells[i]);
            if (said.empty() || said == "n/a" || said == "nan" || said == "none") continue;
            const auto number = real_of(row.cells[i]);
            if (!number)
                throw ParseError(where + "'" + first + "', " + header[i] + ": a number wanted, got '" + one_line(row.cells[i]) + "'");
            metric[header[i] == "Value" ? "avg" : header[i]] = *number;
        }
    }
    if (!is_metric(metrics, "request_count") && !is_metric(metrics, "error_request_count"))
        throw ParseError(name + ": a table of AIPerf without a number of requests: 'Request Count' or 'Error Request Count' wanted");
    PublishedResult result = read_aiperf_metrics(metrics);
    if (rows_of_gpus > 0) result.unread["telemetry of GPUs"] = std::to_string(rows_of_gpus) + " rows";
    return result;
}

}  // namespace servetune
