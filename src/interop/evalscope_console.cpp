// SPDX-License-Identifier: Apache-2.0
// What `evalscope perf` prints at the end of a run: its summary, a row a value under the names of
// its JSON, and its percentiles, until 1.6 a row a percentile, then a row a metric. Both are of one
// run: one result.
#include "printed_lines.hpp"
#include "printed_tables.hpp"
#include "result_formats.hpp"
#include "servetune/value.hpp"

#include <array>
#include <string>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;
using Cells = std::vector<std::string_view>;

/// Above, between or below rows.
bool is_border(std::string_view line) {
    for (const std::string_view corner : {"+-", "+=", "┌", "├", "└", "┏", "┡", "┗"})
        if (line.starts_with(corner)) return true;
    return false;
}

/// The cells of all rows from the line after `lines` on, until a line that is neither row nor
/// border; at most `most`. `end` is set behind the last of them.
std::vector<Cells> rows_of_table(PrintedLines& lines, std::size_t& end) {
    constexpr std::size_t most = 200;
    std::vector<Cells> rows;
    while (rows.size() < most) {
        const auto line = lines.next();
        if (!line) break;
        if (!is_border(*line)) {
            Cells cells = cells_of_row(*line);
            if (cells.empty()) break;
            if (!is_rule(cells)) rows.push_back(std::move(cells));
        }
        end = lines.end();
    }
    return rows;
}

void set_figure(Json& into, const std::string& key, std::string_view cell) {
    if (key.empty() || into.contains(key) || cell.empty() || cell == "nan" || cell == "N/A") return;
    if (const auto number = real_of(cell)) into[key] = *number;
    else into[key] = one_line(cell);
}

/// `Total / Success / Failed` is three values since 1.7.
void set_counts(Json& into, std::string_view cell) {
    for (const char* key : {"Total Requests", "Success Requests", "Failed Requests"}) {
        const auto slash = cell.find('/');
        set_figure(into, key, trimmed(cell.substr(0, slash)));
        cell = slash == std::string_view::npos ? std::string_view() : cell.substr(slash + 1);
    }
}

bool is_summary_header(const Cells& cells) {
    return cells.size() == 2 && (cells[0] == "Key" || cells[0] == "key" || cells[0] == "Metric") &&
           cells[1] == "Value";
}

/// As benchmark_percentile.json: a list of percentiles, each with its metrics. Empty: no such
/// table.
Json percentiles_of(const std::vector<Cells>& rows) {
    Json list = Json::array();
    if (rows.empty() || rows.front().size() < 2) return list;
    const Cells& header = rows.front();
    const bool row_each = header[0] == "Percentiles" || header[0] == "Percentile";
    if (!row_each && header[0] != "Metric") return list;
    if (!row_each)
        for (std::size_t i = 1; i < header.size(); ++i)
            list.push_back({{"Percentiles", one_line(header[i])}});
    for (std::size_t r = 1; r < rows.size(); ++r) {
        if (rows[r].size() != header.size()) continue;
        if (row_each) list.push_back({{"Percentiles", one_line(rows[r][0])}});
        for (std::size_t i = 1; i < header.size(); ++i)
            set_figure(row_each ? list.back() : list[i - 1],
                       one_line(row_each ? header[i] : rows[r][0]), rows[r][i]);
    }
    return list;
}

/// The figures of the percentiles, which the summary does not have.
void add_percentiles(const Json& list, PublishedResult& result) {
    if (!evalscope_percentiles_format.recognises(list)) return;
    for (const PublishedResult& more : evalscope_percentiles_format.read(list)) {
        for_each_figure(
            more.result, [&](const std::string& name, const std::optional<double>& figure) {
                if (!figure) return;
                for_each_figure(result.result,
                                [&](const std::string& own, std::optional<double>& field) {
                                    if (own == name && !field) field = figure;
                                });
            });
        result.unread.insert(more.unread.begin(), more.unread.end());
    }
}

}  // namespace

std::optional<PrintedTable> read_evalscope_console(std::string_view text, std::size_t at) {
    PrintedLines lines(text, at);
    auto line = lines.next();
    if (line && is_border(*line)) line = lines.next();
    if (!line || !is_summary_header(cells_of_row(*line))) return std::nullopt;
    PrintedTable table{at, lines.end(), {}, true};
    Json summary = Json::object();
    for (const Cells& cells : rows_of_table(lines, table.end)) {
        if (cells.size() != 2 || cells[0].starts_with("─")) continue;  // the name of a group
        if (cells[0] == "Total / Success / Failed") set_counts(summary, cells[1]);
        else set_figure(summary, one_line(cells[0]), cells[1]);
    }
    if (!evalscope_format.recognises(summary)) return table;
    PublishedResult result = evalscope_format.read(summary).front();
    // The percentiles follow, with no more than a line of the log between.
    PrintedLines below(text, table.end);
    for (int i = 0; i < 4; ++i) {
        const auto title = below.next();
        if (!title || ends_printed_output(*title)) break;
        if (title->find("Percentile results") == std::string_view::npos) continue;
        std::size_t end = below.end();
        if (const Json list = percentiles_of(rows_of_table(below, end)); !list.empty()) {
            add_percentiles(list, result);
            table.end = end;
        }
        break;
    }
    table.results.push_back(std::move(result));
    return table;
}

}  // namespace servetune
