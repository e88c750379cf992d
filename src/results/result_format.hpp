// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/result_file.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Of one file. A result takes some kilobytes; a sweep has hundreds.
inline constexpr std::size_t most_results = 20'000;

/// The statistics of a TimeSummary, in the order of StatisticNames.
inline constexpr std::array time_statistics{&TimeSummary::mean, &TimeSummary::p50,
                                            &TimeSummary::p90,  &TimeSummary::p95,
                                            &TimeSummary::p99,  &TimeSummary::standard_deviation};
/// As a tool calls them; empty: it has none of that kind.
using StatisticNames = std::array<std::string_view, time_statistics.size()>;

// A path names keys from the top, `metrics>ttft>mean`. `*` in it stands for a statistic.

/// A row of a format: where a figure stands, and the power of ten that turns its unit into ours.
/// Of several rows of one figure the last that is there counts. Times without a `*` are a mean.
struct FigureRow {
    struct Place {
        std::optional<double> BenchmarkResult::*figure = nullptr;
        TimeSummary BenchmarkResult::*times = nullptr;
        constexpr Place(std::optional<double> BenchmarkResult::*one) : figure(one) {}  // NOLINT
        constexpr Place(TimeSummary BenchmarkResult::*family) : times(family) {}       // NOLINT
    };
    std::string_view path;
    Place place;
    int exponent = 0;
};
/// Of several rows of one text the first that is there counts.
struct TextRow {
    std::string_view path;
    std::string PublishedResult::*text;
};

/// What a tool writes, as data: how a result of it is recognised, and where its figures stand.
struct ResultFormat {
    std::string_view tool;
    std::string_view keys;  ///< what it is recognised by, for messages
    /// Without it: by numbers at all of the keys.
    bool (*recognises)(const nlohmann::json& result);
    std::span<const FigureRow> figures{};
    std::span<const TextRow> texts{};
    StatisticNames statistics{};
    std::string_view list{};  ///< key of the list of its results in a report; empty: none
    std::string_view used{};  ///< further keys, between blanks, that `finish` reads or nobody needs
    /// What no row can say.
    void (*finish)(const nlohmann::json& result, PublishedResult& into) = nullptr;
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
