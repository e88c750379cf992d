// SPDX-License-Identifier: Apache-2.0
// Summaries of `vllm bench sweep serve` and of its other commands: every run's flat result in one list
// (summary.json), or as a row of the table that pandas writes (summary.csv). A run's own file has the same keys.
#include "result_sweep.hpp"
#include "result_formats.hpp"
#include "servetune/base/error.hpp"
#include "servetune/io/table.hpp"
#include "servetune/results/result_file.hpp"
#include "servetune/space/value.hpp"

#include <algorithm>
#include <array>

namespace servetune {
namespace {

using Json = nlohmann::json;

const ResultFormat* format_of_run(const Json& run) {
    for (const ResultFormat* format : {&sglang_format, &vllm_format})
        if (format->recognises(run)) return format;
    return nullptr;
}

bool is_sweep(const Json& value) { return value.is_array() && !value.empty() && format_of_run(value.front()) != nullptr; }

/// What a client reports is no setting, also where we have no figure for it.
bool is_reported(const std::string& name) {
    constexpr std::array<std::string_view, 5> parts{"_ms", "spec_decode_", "diffusion_", "probe_", "rtfx"};
    return name == "run_number" || std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
               return part == "_ms" ? name.ends_with(part) : name.starts_with(part);
           });
}

/// What the runs of a sweep differ in names each: nothing in the file says which keys are the settings of the sweep, so
/// these are its scalars that no figure has, the cap and the rate, where they differ.
void label_by_difference(std::vector<PublishedResult>& runs) {
    std::vector<std::map<std::string, std::string>> settings;
    for (const PublishedResult& run : runs) {
        std::map<std::string, std::string> of_run;
        for (const auto& [name, text] : run.unread)
            if (!is_reported(name)) of_run[name] = text;
        if (run.result.maximum_concurrency) of_run["max_concurrency"] = text_of(*run.result.maximum_concurrency);
        if (run.result.requested_rate_per_second) of_run["request_rate"] = text_of(*run.result.requested_rate_per_second);
        settings.push_back(std::move(of_run));
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
        std::string label;
        for (const auto& [name, text] : settings[i]) {
            const bool differs = std::any_of(settings.begin(), settings.end(), [&, n = name, t = text](const auto& other) {
                const auto found = other.find(n);
                return found == other.end() || found->second != t;
            });
            if (differs) label.append(label.empty() ? "" : ", ").append(name).append("=").append(text);
        }
        if (label.empty()) continue;
        runs[i].sections = {one_line(label)};  // as a heading: it names a run, not a workload
        runs[i].labels.push_back(one_line(label));
    }
}

std::vector<PublishedResult> read_runs(const Json& runs) {
    std::vector<PublishedResult> results;
    for (const Json& run : runs) {
        const ResultFormat* format = format_of_run(run);
        if (format == nullptr)
            throw ParseError("value " + std::to_string(results.size() + 1) + " of the list is no run: " + std::string(vllm_format.keys) +
                             " wanted, as in those before it");
        for (PublishedResult& result : format->read(run)) results.push_back(std::move(result));
    }
    label_by_difference(results);
    return results;
}

/// Columns that are texts whatever is in them: a model may be called `7e5`.
bool is_text_column(std::string_view name) {
    constexpr std::array<std::string_view, 8> names{"date",     "endpoint_type", "backend", "label",
                                                    "model_id", "tokenizer_id",  "tag",     "_benchmark_name"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// pandas writes `64.0` in a column of whole numbers where a row has none, `True`, Python's lists, and nothing for None
/// and NaN.
std::optional<Json> value_of_sweep_cell(std::string_view column, const std::string& cell) {
    if (cell.empty()) return std::nullopt;
    if (is_text_column(column)) return Json(cell);
    if (const auto number = real_of(cell)) return Json(*number);
    if (cell == "True") return Json(true);
    if (cell == "False") return Json(false);
    if (cell.front() != '[' && cell.front() != '{') return Json(cell);
    if (cell.find_first_of("[{", 1) != std::string::npos) return std::nullopt;
    Json list = Json::parse(cell, nullptr, false);
    return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& entry) { return entry.is_number(); })
               ? std::optional(std::move(list))
               : std::nullopt;  // texts, errors, lists of lists: no figure of a summary
}

std::vector<std::string_view> first_cells(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    std::string_view line = text.substr(0, text.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::vector<std::string_view> cells;
    while (true) {
        const auto comma = line.find(',');
        cells.push_back(line.substr(0, comma));
        if (comma == std::string_view::npos) return cells;
        line.remove_prefix(comma + 1);
    }
}

}  // namespace

bool is_result_table(std::string_view text) {
    const std::vector<std::string_view> header = first_cells(text);
    return std::all_of(sweep_columns.begin(), sweep_columns.end(),
                       [&](std::string_view wanted) { return std::find(header.begin(), header.end(), wanted) != header.end(); });
}

std::vector<PublishedResult> read_sweep_table(std::string_view text, const std::string& name) {
    const std::vector<CsvRow> rows = parse_csv(text, name);
    const std::vector<std::string>& header = rows.front().cells;
    std::vector<PublishedResult> results;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const std::string where = name + ":" + std::to_string(rows[r].line) + ": ";
        const std::vector<std::string>& cells = rows[r].cells;
        if (cells.size() != header.size())
            throw ParseError(where + std::to_string(header.size()) + " cells wanted, got " + std::to_string(cells.size()));
        Json run = Json::object();
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (auto value = header[i].empty() ? std::nullopt : value_of_sweep_cell(header[i], cells[i]))
                run[header[i]] = std::move(*value);
        const ResultFormat* format = format_of_run(run);
        if (format == nullptr) throw ParseError(where + "no run: numbers wanted in " + std::string(vllm_format.keys));
        for (PublishedResult& result : format->read(run)) results.push_back(std::move(result));
    }
    if (results.empty()) throw ParseError(name + ": a table of `vllm bench sweep` without a row");
    label_by_difference(results);
    return results;
}

const ResultFormat sweep_format{"vllm bench sweep", "a list of vLLM's or SGLang's results (summary.json)", is_sweep, read_runs};

}  // namespace servetune
