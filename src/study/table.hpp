// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/replay.hpp"

#include <filesystem>

namespace servetune {

/// A row of a CSV file (RFC 4180) and the line it starts on.
struct CsvRow {
    std::vector<std::string> cells;
    std::size_t line = 0;
};
/// Quoted cells may hold commas, quotes ("") and line ends; CRLF, a byte order mark and a missing
/// last line end are fine. A `'` that csv_line put in front is taken off. Throws ParseError
/// `name:line:` for an unclosed quote and for what is not UTF-8.
std::vector<CsvRow> parse_csv(std::string_view text, const std::string& name, char separator = ',');
/// The cells of a row that must have so many. Throws ParseError `name:line:`.
const std::vector<std::string>& cells_of(const CsvRow& row, std::size_t count,
                                         const std::string& name);
/// One row with its line end; quoted where needed. What a spreadsheet would take for a formula gets
/// a `'` in front.
std::string csv_line(const std::vector<std::string>& cells);

/// Reads a table of measured configurations (docs: search_spaces/FORMAT.md, "Tables"). Columns left
/// of `status` are parameters, but for `workload`, `repeat` and the descriptive `block`, `section`;
/// columns right of it are metrics, but for `message` (of a failed row), `verdict`, `findings`
/// (identities, blank separated) and the descriptive `arguments`, `note`. `status` is `ok` or a
/// kind of failure. An empty cell is an inactive parameter or an absent metric. Throws IoError, or
/// ParseError with file and line.
MeasuredTable read_table(const std::filesystem::path& file);
MeasuredTable parse_table(std::string_view text, const std::string& name);
/// The metrics that any of its rows has, sorted; none: all failed.
std::vector<std::string> metrics_of(const MeasuredTable& table);

}  // namespace servetune
