// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/result_file.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

using Texts = std::vector<std::string>;

/// Of one file. A result takes some kilobytes; a sweep has hundreds.
inline constexpr std::size_t most_results = 20'000;

/// A row of a format: where a figure or a text stands, by the keys from the top
/// (`metrics>ttft>mean`), and its unit.
struct FormatRow {
    std::string path;
    std::string PublishedResult::*text = nullptr;
    std::size_t figure = 0;   ///< in `figures_in`; of a row without `text`
    std::string unit{};       ///< as the tool calls it; `count`: a whole number
    int exponent = 0;         ///< the power of ten that turns it into ours
    std::string unit_path{};  ///< where a file says its own unit; empty: nowhere
    bool each = false;        ///< a mean, whose sum is the figure
    bool read_only = false;   ///< not written, as another tool has it
};
/// A part of tables/figures_of_tools.txt.
struct FormatTable {
    std::vector<FormatRow> rows{};
    std::set<std::string, std::less<>> used{};  ///< `*`: all are read, or nobody needs them
    bool read_only = false;                     ///< of the rows that follow
};
const FormatTable& format_table(std::string_view name);
/// All figures, in the order of `for_each_figure`.
std::vector<std::optional<double>*> figures_in(BenchmarkResult& result);

/// What a tool writes, as data: how a result of it is recognised, and where its figures stand.
struct ResultFormat {
    std::string_view tool;   ///< tables/known_by.txt says what its results have
    std::string_view table;  ///< its `format_table`
    /// What no row can say.
    void (*finish)(const nlohmann::json& result, PublishedResult& into);
    std::string_view list{};  ///< key of the list of its results in a report; empty: none
};
/// The results of a value of JSON: one, a list of them, or a report. Throws ParseError for another.
std::vector<PublishedResult> results_of(const nlohmann::json& value);

/// The tools write 0 for what they did not measure: gaps of one-token answers, times of a run
/// without a success. Gaps of 0 in answers whose tokens took time stay: they are a finding.
void drop_unmeasured(BenchmarkResult& figures);

/// Not all requests were sent or ended: the result is suspect. `why`: what says so.
void add_cut_short(PublishedResult& result, std::string why);

/// Control characters become blanks, and what is longer than 500 bytes is cut: names from files go
/// into tables.
std::string one_line(std::string_view text);

/// Whether anything was measured; what was asked for is no figure.
bool has_figures(BenchmarkResult result);

/// A CSV file as a list of JSON objects, a row each, where it is a table of `vllm bench sweep`.
bool is_sweep_table(std::string_view text);
nlohmann::json rows_of_sweep_table(std::string_view text, const std::string& name);

}  // namespace servetune
