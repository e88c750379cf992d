// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/result_file.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Of one file. A result takes some kilobytes; a sweep has hundreds.
inline constexpr std::size_t most_results = 20'000;

/// How results in JSON are recognised, and read. A format that is no longer read throws ParseError.
struct ResultFormat {
    std::string_view tool;
    std::string_view keys;  ///< what it is recognised by, for messages
    bool (*recognises)(const nlohmann::json& value);
    std::vector<PublishedResult> (*read)(const nlohmann::json& value);
};
extern const std::span<const ResultFormat> serving_formats, aiperf_formats, other_formats;

/// The statistics of a TimeSummary, in the order of StatisticNames.
inline constexpr std::array time_statistics{&TimeSummary::mean, &TimeSummary::p50,
                                            &TimeSummary::p90,  &TimeSummary::p95,
                                            &TimeSummary::p99,  &TimeSummary::standard_deviation};
/// As a tool calls them; empty: it has none of that kind.
using StatisticNames = std::array<std::string_view, time_statistics.size()>;
/// The families of times that tools report.
inline constexpr std::array time_families{
    &BenchmarkResult::time_to_first_token, &BenchmarkResult::time_per_output_token,
    &BenchmarkResult::inter_token_latency, &BenchmarkResult::latency};

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
/// What a tool writes, as data.
struct ToolFields {
    std::string_view tool;
    std::span<const FigureRow> figures{};
    std::span<const TextRow> texts{};
    StatisticNames statistics{};
};
/// The figures and texts of a result; how its engine was started is not known.
PublishedResult read_fields(const nlohmann::json& value, const ToolFields& fields);
/// The scalars of an object that no row reads, without `others`.
std::map<std::string, std::string> unread_of(const nlohmann::json& value, const ToolFields& fields,
                                             std::set<std::string> others = {});
/// The results of one row, or of a list of them. `what`: of a row, for what is none.
std::vector<PublishedResult> read_rows(const nlohmann::json& value,
                                       bool (*is_row)(const nlohmann::json& row),
                                       PublishedResult (*read)(const nlohmann::json& row),
                                       std::string_view what);

/// The node at a path; nullptr when any key is missing or its parent is no object.
const nlohmann::json* node_at(const nlohmann::json& value, std::string_view path);
/// The finite number at a path, times ten to the `exponent` (the double nearest to the decimal).
/// Anything else is no figure: null, text in the place of a number. A negative one is a figure that
/// cannot be, and the audit says so.
std::optional<double> figure_at(const nlohmann::json& value, std::string_view path,
                                int exponent = 0);
/// The same of what was asked for, where a negative number says "none" or "not known".
std::optional<double> setting_at(const nlohmann::json& value, std::string_view path);
/// The text at a path in one line, cut to 500 bytes; empty when there is none.
std::string text_at(const nlohmann::json& value, std::string_view path);
TimeSummary times_at(const nlohmann::json& value, std::string_view path,
                     const StatisticNames& statistics, int exponent = 0);
/// The tools write 0 for what they did not measure: gaps of one-token answers, times of a run
/// without a success. Gaps of 0 in answers whose tokens took time stay: they are a finding.
void drop_unmeasured(BenchmarkResult& figures);
/// The total of a mean of all successes, rounded; nothing for 0 and what is not finite.
std::optional<double> total_of(const std::optional<double>& mean,
                               const std::optional<double>& successes);

/// A number, a truth value or a text as one line; nothing for null, arrays and objects.
std::optional<std::string> scalar_text(const nlohmann::json& value);
/// The scalars of an object, without those keys.
std::map<std::string, std::string> scalars_of(const nlohmann::json& object,
                                              const std::set<std::string>& without = {});
/// Control characters become blanks: names from files go into tables.
std::string one_line(std::string_view text);
/// The power of ten that turns a unit of time into seconds (`ns`, `us`, `ms`, `s`, `sec`,
/// `seconds`); nothing for another word: a unit is what the file says, never assumed.
std::optional<int> time_exponent_of(std::string_view unit);
/// Of what is finite; without a sample nothing.
TimeSummary summary_of_times(std::vector<double> samples);

/// Whether anything was measured; what was asked for is no figure.
bool has_figures(BenchmarkResult result);

/// `NAME=VALUE, ...` of an object's scalars.
std::string settings_text(const std::map<std::string, std::string>& settings);

// CSV files of two tools (serving_formats.cpp, aiperf_formats.cpp).
bool is_sweep_table(std::string_view text);
std::vector<PublishedResult> read_sweep_table(std::string_view text, const std::string& name);
bool is_perf_table(std::string_view text);
PublishedResult read_perf_table(std::string_view text, const std::string& name);

/// The requests of one run as AIPerf writes them, one object a line (profile_export.jsonl),
/// gathered into a result. Only the measured phase counts. Figures are those of AIPerf's own
/// summary: of successes alone, percentiles linear between order statistics, the duration from the
/// first start to the last end.
class AiperfRecords {
public:
    [[nodiscard]] static bool recognises(const nlohmann::json& value);
    /// A value that `recognises`.
    void add(const nlohmann::json& record);
    [[nodiscard]] bool empty() const { return warm_up_ + successes_ + failures_ == 0; }
    /// Throws ParseError when all of it was warm-up.
    [[nodiscard]] PublishedResult result() const;

private:
    /// A sum without one of its requests would be too small, so then there is none.
    struct Tokens {
        double sum = 0;
        std::size_t counted = 0;
    };
    std::size_t warm_up_ = 0, successes_ = 0, failures_ = 0, cancelled_ = 0;
    std::optional<std::int64_t> first_start_{}, last_end_{};
    Tokens input_{}, output_{};
    std::array<std::vector<double>, 4> times_{};  ///< of each metric in the .cpp's order
};

}  // namespace servetune
