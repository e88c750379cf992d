// SPDX-License-Identifier: Apache-2.0
// The tables that AIPerf (`Metric`) and GenAI-Perf (`Statistic`) draw at the end of a run: the rows
// of their CSV, with fewer statistics.
#include "base/lower_case.hpp"
#include "perf_table.hpp"
#include "printed_lines.hpp"
#include "printed_tables.hpp"
#include "result_formats.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using Cells = std::vector<std::string_view>;

bool is_metrics_header(const Cells& cells) {
    return cells.size() > 3 && (cells[0] == "Statistic" || cells[0] == "Metric") &&
           cells[1] == "avg" && cells[2] == "min" && cells[3] == "max";
}

/// A row as it was before its cells were broken over lines: the tool breaks long titles before the
/// unit, and a narrow terminal breaks titles between words and values anywhere.
using WholeRow = std::vector<std::string>;

bool continues(const Cells& cells) {
    const bool no_values = std::all_of(cells.begin() + 1, cells.end(),
                                       [](std::string_view cell) { return cell.empty(); });
    return no_values || cells[0].empty() || cells[0].starts_with('(');
}

void continue_row(WholeRow& row, const Cells& cells) {
    if (!cells[0].empty()) row[0] += " " + one_line(cells[0]);
    for (std::size_t i = 1; i < cells.size(); ++i) row[i] += one_line(cells[i]);
}

/// Adds the metric of a row. What is no number is no figure, and is listed.
void add_metric(const Cells& header, const WholeRow& row, Json& metrics,
                std::map<std::string, std::string>& unread) {
    const auto [tag, unit] = perf_tag_and_unit(row[0]);
    if (tag.empty()) return;
    if (metrics.contains(tag)) {
        unread[tag + ", again"] = row[1];
        return;
    }
    Json metric{{"unit", unit}};
    for (std::size_t i = 1; i < header.size(); ++i) {
        const std::string said = lower_case(row[i]);
        if (said.empty() || said == "n/a" || said == "nan" || said == "none") continue;
        if (const auto number = perf_number(row[i])) metric[std::string(header[i])] = *number;
        else unread[tag + " " + one_line(header[i])] = row[i];
    }
    metrics[tag] = std::move(metric);
}

/// GenAI-Perf of 2024 printed its rates below the table: `Output token throughput (per sec):
/// 284.64`.
bool add_line_below(std::string_view line, Json& metrics) {
    const auto colon = line.rfind("): ");
    if (colon == std::string_view::npos) return false;
    const auto [tag, unit] = perf_tag_and_unit(line.substr(0, colon + 1));
    const auto number = perf_number(trimmed(line.substr(colon + 3)));
    if (!number || (tag != "output_token_throughput" && tag != "request_throughput") ||
        metrics.contains(tag))
        return false;
    metrics[tag] = {{"unit", unit}, {"avg", *number}};
    return true;
}

bool is_drawn(std::string_view line) {
    for (const std::string_view corner : {"┏", "┡", "├", "└", "┗", "┌", "╞", "┠", "+-", "+="})
        if (line.starts_with(corner)) return true;
    return false;
}

}  // namespace

std::optional<PrintedTable> read_perf_console(std::string_view text, std::size_t at) {
    PrintedLines lines(text, at);
    auto line = lines.next();
    if (line && is_drawn(*line)) line = lines.next();
    if (!line) return std::nullopt;
    const Cells header = cells_of_row(*line);
    if (!is_metrics_header(header)) return std::nullopt;
    PrintedTable table{at, lines.end(), {}, true};
    std::map<std::string, std::string> unread;
    std::vector<WholeRow> rows;
    std::size_t of_other_length = 0;
    while ((line = lines.next())) {
        if (is_drawn(*line)) {
            table.end = lines.end();
            continue;
        }
        const Cells cells = cells_of_row(*line);
        if (cells.empty() || is_metrics_header(cells)) break;
        table.end = lines.end();
        if (is_rule(cells)) continue;
        if (cells.size() != header.size()) ++of_other_length;
        else if (!rows.empty() && continues(cells)) continue_row(rows.back(), cells);
        else rows.emplace_back(cells.begin(), cells.end());
    }
    Json metrics = Json::object();
    for (const WholeRow& row : rows) add_metric(header, row, metrics, unread);
    const bool genai_perf = header[0] == "Statistic";
    while (genai_perf && line && add_line_below(*line, metrics)) {
        table.end = lines.end();
        line = lines.next();
    }
    // When it still counted nanoseconds its time between tokens may have been another.
    const auto gaps = metrics.find("inter_token_latency");
    if (genai_perf && gaps != metrics.end() && (*gaps)["unit"] == "ns") {
        if (gaps->contains("avg"))
            unread["inter_token_latency"] =
                (*gaps)["avg"].dump() + " ns, of a version whose meaning is not known";
        metrics.erase(gaps);
    }
    if (of_other_length > 0) unread["rows of another length"] = std::to_string(of_other_length);
    PublishedResult result = perf_result(std::move(metrics), genai_perf);
    result.unread.merge(unread);
    if (has_figures(result.result)) table.results.push_back(std::move(result));
    return table;
}

}  // namespace servetune
