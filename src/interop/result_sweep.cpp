// SPDX-License-Identifier: Apache-2.0
// Summaries of `vllm bench sweep serve` and of its other commands: every run's flat result in one
// list (summary.json), or as a row of the table that pandas writes (summary.csv). A run's own file
// has the same keys. With --continue-on-error a run or a server that failed leaves a file that says
// why, and no result.
#include "result_sweep.hpp"
#include "base/nesting.hpp"
#include "result_formats.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"
#include "servetune/value.hpp"
#include "study/table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

namespace servetune {
namespace {

using Json = nlohmann::json;

const ResultFormat* format_of_run(const Json& run) {
    for (const ResultFormat* format : {&sglang_format, &vllm_format})
        if (format->recognises(run)) return format;
    return nullptr;
}

bool is_sweep(const Json& value) {
    return value.is_array() && !value.empty() && format_of_run(value.front()) != nullptr;
}

/// What a client reports is no setting, also where we have no figure for it.
bool is_reported(const std::string& name) {
    constexpr std::array<std::string_view, 5> parts{"_ms", "spec_decode_", "diffusion_", "probe_",
                                                    "rtfx"};
    return name == "run_number" ||
           std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
               return part == "_ms" ? name.ends_with(part) : name.starts_with(part);
           });
}

/// What the runs of a sweep differ in names each: nothing in the file says which keys are the
/// settings of the sweep, so these are its scalars that no figure has, the cap and the rate, where
/// they differ.
void label_by_difference(std::vector<PublishedResult>& runs) {
    std::vector<std::map<std::string, std::string>> settings;
    for (const PublishedResult& run : runs) {
        std::map<std::string, std::string> of_run;
        for (const auto& [name, text] : run.unread)
            if (!is_reported(name)) of_run[name] = text;
        if (run.result.maximum_concurrency)
            of_run["max_concurrency"] = text_of(*run.result.maximum_concurrency);
        if (run.result.requested_rate_per_second)
            of_run["request_rate"] = text_of(*run.result.requested_rate_per_second);
        settings.push_back(std::move(of_run));
    }
    struct Seen {
        std::string first;
        std::size_t runs = 0;
        bool differs = false;
    };
    std::map<std::string, Seen> seen;
    for (const auto& of_run : settings)
        for (const auto& [name, text] : of_run) {
            Seen& one = seen[name];
            if (one.runs++ == 0) one.first = text;
            one.differs = one.differs || one.first != text;
        }
    for (std::size_t i = 0; i < runs.size(); ++i) {
        std::string label;
        for (const auto& [name, text] : settings[i]) {
            const Seen& one = seen.at(name);
            if (one.differs || one.runs < runs.size())
                label.append(label.empty() ? "" : ", ").append(name).append("=").append(text);
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
            throw ParseError("value " + std::to_string(results.size() + 1) +
                             " of the list is no run: " + std::string(vllm_format.keys) +
                             " wanted, as in those before it");
        for (PublishedResult& result : format->read(run)) results.push_back(std::move(result));
    }
    label_by_difference(results);
    return results;
}

bool is_failure(const Json& value) {
    const Json* flags = node_at(value, {"serve_overrides"});
    return flags != nullptr && flags->is_object() && !text_at(value, {"error_type"}).empty() &&
           node_at(value, {"error"}) != nullptr;
}

/// What a sweep sets, by the names without dashes in front and with `_`.
std::map<std::string, std::string> settings_in(const Json& overrides) {
    std::map<std::string, std::string> settings;
    if (!overrides.is_object()) return settings;
    for (const auto& [key, value] : overrides.items()) {
        std::string name = one_line(key);
        name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
        std::replace(name.begin(), name.end(), '-', '_');
        const auto text = scalar_text(value);
        if (!text)
            throw ParseError("a failed run of `vllm bench sweep` whose '" + one_line(key) +
                             "' is not a single value: what failed is not known");
        settings[name] = *text;
    }
    return settings;
}

/// A run whose client or server failed, or a server that did not start: nothing of its log is kept.
std::vector<PublishedResult> read_failed_run(const Json& value) {
    const std::string type = text_at(value, {"error_type"});
    PublishedResult result;
    result.tool = "vllm";
    result.failure_message = type + ": " + text_at(value, {"error"});
    const Json* run = node_at(value, {"run_number"});
    if (run != nullptr && *run == -1)
        throw ParseError(
            "the warm-up of a combination of `vllm bench sweep` failed, which is no result: " +
            result.failure_message);
    const FailureKind kind = run != nullptr           ? FailureKind::load_test_failed
                             : type == "TimeoutError" ? FailureKind::not_ready_in_time
                                                      : FailureKind::other;
    result.failure = std::string(name_in(failure_kinds, kind));
    result.server_settings = settings_in(*node_at(value, {"serve_overrides"}));
    result.server_settings_are_given = true;
    result.arguments_unknown = true;
    std::string label;
    for (const auto& [name, text] : result.server_settings)
        label += (label.empty() ? "" : ", ") + name + "=" + text;
    if (const Json* load = node_at(value, {"bench_overrides"})) {
        result.unread = settings_in(*load);
        for (const auto& [name, text] : result.unread)
            label += (label.empty() ? "" : ", ") + name + "=" + text;
        const auto take = [&](const char* name, std::optional<double>& figure) {
            const auto found = result.unread.find(name);
            if (found == result.unread.end()) return;
            if (const auto number = real_of(found->second);
                number && *number >= 0 && std::isfinite(*number))
                figure = number;
            result.unread.erase(found);
        };
        take("max_concurrency", result.result.maximum_concurrency);
        take("request_rate", result.result.requested_rate_per_second);
    }
    if (!label.empty()) {
        result.sections = {label};
        result.labels.push_back(label);
    }
    return {result};
}

/// Columns that are texts whatever is in them: a model may be called `7e5`.
bool is_text_column(std::string_view name) {
    constexpr std::array<std::string_view, 8> names{"date",  "endpoint_type",  "backend",
                                                    "label", "model_id",       "tokenizer_id",
                                                    "tag",   "_benchmark_name"};
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// pandas writes `64.0` in a column of whole numbers where a row has none, `True`, Python's lists,
/// and nothing for None and NaN.
std::optional<Json> value_of_sweep_cell(std::string_view column, const std::string& cell) {
    if (cell.empty()) return std::nullopt;
    if (is_text_column(column)) return Json(cell);
    if (const auto number = real_of(cell)) return Json(*number);
    if (cell == "True") return Json(true);
    if (cell == "False") return Json(false);
    if (cell.front() != '[' && cell.front() != '{') return Json(cell);
    if (cell.find_first_of("[{", 1) != std::string::npos) return std::nullopt;
    auto list = shallow_json<Json>(cell);
    return list.is_array() && std::all_of(list.begin(), list.end(),
                                          [](const Json& entry) { return entry.is_number(); })
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

bool is_sweep_table(std::string_view text) {
    const std::vector<std::string_view> header = first_cells(text);
    return std::all_of(sweep_columns.begin(), sweep_columns.end(), [&](std::string_view wanted) {
        return std::find(header.begin(), header.end(), wanted) != header.end();
    });
}

std::vector<PublishedResult> read_sweep_table(std::string_view text, const std::string& name) {
    const std::vector<CsvRow> rows = parse_csv(text, name);
    const std::vector<std::string>& header = rows.front().cells;
    if (rows.size() > most_results + 1)
        throw ParseError(name + ": more than " + std::to_string(most_results) + " rows; split it");
    std::vector<PublishedResult> results;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        const std::string where = name + ":" + std::to_string(rows[r].line) + ": ";
        const std::vector<std::string>& cells = rows[r].cells;
        if (cells.size() != header.size())
            throw ParseError(where + std::to_string(header.size()) + " cells wanted, got " +
                             std::to_string(cells.size()));
        Json run = Json::object();
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (auto value =
                    header[i].empty() ? std::nullopt : value_of_sweep_cell(header[i], cells[i]))
                run[header[i]] = std::move(*value);
        const ResultFormat* format = format_of_run(run);
        if (format == nullptr)
            throw ParseError(where + "no run: numbers wanted in " + std::string(vllm_format.keys));
        for (PublishedResult& result : format->read(run)) results.push_back(std::move(result));
    }
    if (results.empty()) throw ParseError(name + ": a table of `vllm bench sweep` without a row");
    label_by_difference(results);
    return results;
}

const ResultFormat sweep_failure_format{
    "vllm bench sweep", "error_type, error and serve_overrides (*.failure.json, *-failure.json)",
    is_failure, read_failed_run};
const ResultFormat sweep_format{
    "vllm bench sweep", "a list of vLLM's or SGLang's results (summary.json)", is_sweep, read_runs};

}  // namespace servetune
