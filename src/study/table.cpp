// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"

#include <sstream>

namespace servetune {

namespace {

/// Whether a spreadsheet takes the cell for a formula, once `'` in front of it is gone: it begins
/// with = + - @, a tab or a line end, goes on, and is no number (OWASP, "CSV Injection").
bool looks_like_formula(std::string_view cell) {
    const std::size_t begin = std::min(cell.find_first_not_of('\''), cell.size());
    const std::string_view rest = cell.substr(begin);
    if (rest.size() < 2 || !contains("=+-@\t\r\n", rest.front())) return false;
    return begin > 0 || std::holds_alternative<std::string>(value_of(std::string(rest)));
}

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name, char separator) {
    text = utf8_text(text, name);
    std::vector<CsvRow> rows;
    CsvRow row{{}, 1};
    std::string cell;
    std::size_t line = 1;
    bool quoted = false;
    bool any = false;  // whether the row has begun: an empty line is no row
    const auto end_cell = [&] {
        if (cell.starts_with('\'') && looks_like_formula(cell))
            cell.erase(0, 1);  // csv_line put it there
        row.cells.push_back(std::move(cell));
        cell.clear();
    };
    const auto end_row = [&] {
        if (any) {
            end_cell();
            rows.push_back(std::move(row));
        }
        any = false;
        row = {{}, line};
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\n') ++line;
        if (quoted) {
            if (c != '"') cell += c;
            else if (i + 1 < text.size() && text[i + 1] == '"') cell += text[++i];
            else quoted = false;
        } else if (c == '"' && cell.empty()) quoted = any = true;
        else if (c == separator) {
            any = true;
            end_cell();
        } else if (c == '\n') end_row();
        else if (c == '\r' && (i + 1 == text.size() || text[i + 1] == '\n')) continue;
        else {
            any = true;
            cell += c;
        }
    }
    if (quoted)
        throw ParseError(name + ":" + std::to_string(row.line) + ": a quoted cell is never closed");
    end_row();
    return rows;
}

const std::vector<std::string>& cells_of(const CsvRow& row, std::size_t count,
                                         const std::string& name) {
    if (row.cells.size() != count)
        throw ParseError(name + ":" + std::to_string(row.line) + ": " + std::to_string(count) +
                         " cells wanted, got " + std::to_string(row.cells.size()));
    return row.cells;
}

std::string csv_line(const std::vector<std::string>& cells) {
    std::string result;
    const bool looks_empty = cells.size() == 1 && cells.front().empty();  // an empty line is no row
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) result += ',';
        const bool looks_marked =
            cells[i].starts_with(byte_order_mark);  // at the start of a file it is no text
        const std::string cell = (looks_like_formula(cells[i]) ? "'" : "") + cells[i];
        if (cell.find_first_of(",\"\r\n") == npos && !looks_empty && !looks_marked) {
            result += cell;
            continue;
        }
        result += '"';
        for (const char c : cell) result += c == '"' ? std::string("\"\"") : std::string(1, c);
        result += '"';
    }
    return result + "\n";
}

MeasuredTable read_table(const std::filesystem::path& file) {
    return parse_table(read_file(file), file.string());
}

MeasuredTable parse_table(std::string_view text, const std::string& name) {
    static constexpr std::array<std::string_view, 2> described_left{"block", "section"};
    static constexpr std::string_view repeat_column = "repeat";
    static constexpr std::array<std::string_view, 2> described_right{"arguments", "note"};
    const std::vector<CsvRow> rows = parse_csv(text, name);
    if (rows.empty()) throw ParseError(name + ":1: a table starts with a line of column names");
    const std::vector<std::string>& header = rows.front().cells;
    const auto status =
        std::size_t(std::find(header.begin(), header.end(), "status") - header.begin());
    if (status == header.size())
        throw ParseError(
            name +
            ":1: the table has no column 'status' (left of it: parameters, right of it: metrics)");
    std::set<std::string> seen;
    for (const std::string& column : header)
        if (!seen.insert(column).second)
            throw ParseError(name + ":1: the column '" + column + "' stands twice");

    MeasuredTable table{name, {}, {}};
    for (std::size_t i = 0; i < status; ++i)
        if (header[i] != "workload" && header[i] != repeat_column &&
            !contains(described_left, header[i]))
            table.parameters.push_back(header[i]);
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const auto place = name + ":" + std::to_string(rows[r].line) + ": ";
        const std::vector<std::string>& cells = cells_of(rows[r], header.size(), name);
        MeasuredTable::Row row{{}, {}, {}, rows[r].line, {}};
        Measurement measurement;
        std::string message;
        for (std::size_t i = 0; i < header.size(); ++i) {
            const std::string& column = header[i];
            if (column == "workload") row.workload = cells[i];
            else if (i < status && column == repeat_column) row.repeat = cells[i];
            else if (i < status && !contains(described_left, column))
                row.cells.push_back(cells[i].empty() ? std::nullopt : std::optional(cells[i]));
            else if (column == "message") message = cells[i];
            else if (column == "verdict" && !cells[i].empty()) {
                const auto verdict = named_in(verdicts, cells[i]);
                if (!verdict)
                    throw ParseError(place +
                                     "verdict: sound, unchecked, suspect or unsound wanted, got '" +
                                     cells[i] + "'");
                measurement.validity.verdict = *verdict;
            } else if (column == "findings") {
                std::istringstream ids(cells[i]);
                for (std::string id; ids >> id;) measurement.validity.findings.push_back({id});
            } else if (i > status && !contains(described_right, column) && column != "verdict" &&
                       !cells[i].empty()) {
                const auto number = real_of(cells[i]);
                if (!number)
                    throw ParseError(place + column + ": a number wanted, got '" + cells[i] + "'");
                measurement.metrics[column] = {*number};
            }
        }
        if (cells[status] == "ok") row.outcome = std::move(measurement);
        else if (const auto kind = named_in(failure_kinds, cells[status]))
            row.outcome = Failure{*kind, message};
        else {
            std::vector<std::string> known{"ok"};
            for (const auto& [failure, text_of_kind] : failure_kinds)
                known.emplace_back(text_of_kind);
            throw ParseError(place + "status: '" + cells[status] + "' is unknown; known: " +
                             listed(nearest_first(cells[status], known), known.size()));
        }
        table.rows.push_back(std::move(row));
    }
    if (table.rows.empty()) throw ParseError(name + ":1: the table has no rows");
    return table;
}

std::vector<std::string> metrics_of(const MeasuredTable& table) {
    std::set<std::string> all;
    for (const MeasuredTable::Row& row : table.rows)
        if (const auto* measurement = std::get_if<Measurement>(&row.outcome))
            for (const auto& [name, metric] : measurement->metrics) all.insert(name);
    return {all.begin(), all.end()};
}

}  // namespace servetune
