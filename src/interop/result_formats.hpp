// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Of one file. A result takes some kilobytes; a sweep has hundreds.
inline constexpr std::size_t most_results = 20'000;

/// The JSON formats of results that read_results knows: how each is recognised, and read.
struct ResultFormat {
    std::string_view tool;
    std::string_view keys;  ///< what it is recognised by, for messages
    bool (*recognises)(const nlohmann::json& value);
    std::vector<PublishedResult> (*read)(const nlohmann::json& value);
};

extern const ResultFormat servetune_format, vllm_format, sglang_format;    // result_serving.cpp
extern const ResultFormat sweep_format, sweep_failure_format;              // result_sweep.cpp
extern const ResultFormat guidellm_format, gpustack_format;                // result_guidellm.cpp
extern const ResultFormat genai_perf_format, aiperf_format;                // result_aiperf.cpp
extern const ResultFormat aiperf_sweep_format, aiperf_runs_format;         // result_aiperf_runs.cpp
extern const ResultFormat inferencex_format;                               // result_inferencex.cpp
extern const ResultFormat evalscope_format, evalscope_percentiles_format;  // result_evalscope.cpp
extern const ResultFormat inference_perf_format, llama_bench_format;       // result_stages.cpp

// ---- what they share (result_json.cpp) ----

using JsonPath = std::initializer_list<std::string_view>;

/// The node at a path of keys; nullptr when any is missing or its parent is no object.
const nlohmann::json* node_at(const nlohmann::json& value, JsonPath path);
/// The finite number at a path, times ten to the `exponent` (the double nearest to the decimal).
/// Anything else is no figure: null, text in the place of a number. A negative one is a figure that
/// cannot be, and the audit says so.
std::optional<double> figure_at(const nlohmann::json& value, JsonPath path, int exponent = 0);
/// The same of what was asked for, where a negative number says "none" or "not known".
std::optional<double> setting_at(const nlohmann::json& value, JsonPath path);
/// The text at a path in one line, cut to 500 bytes; empty when there is none.
std::string text_at(const nlohmann::json& value, JsonPath path);
/// A number, a truth value or a text as one line; nothing for null, arrays and objects.
std::optional<std::string> scalar_text(const nlohmann::json& value);
/// Control characters become blanks: names from files go into tables.
std::string one_line(std::string_view text);
/// The power of ten that turns a unit of time into seconds (`ns`, `us`, `ms`, `s`, `sec`,
/// `seconds`); nothing for another word: a unit is what the file says, never assumed.
std::optional<int> time_exponent_of(std::string_view unit);

/// Whether anything was measured; what was asked for is no figure.
bool has_figures(BenchmarkResult result);

/// The top level of a flat result; remembers what was asked for, so that the rest can be told.
class ResultFields {
public:
    explicit ResultFields(const nlohmann::json& object) : object_(object) {}

    std::optional<double> figure(const std::string& key, int exponent = 0);
    std::string text(const std::string& key);
    /// The family `mean_ttft_ms`, `median_ttft_ms`, `p99_ttft_ms`, `std_ttft_ms`, ...: `family` and
    /// `suffix` are `ttft` and `_ms`. vLLM and SGLang write 0 for what was not measured (the mean
    /// of an empty list): mean, median and standard deviation of 0 mean that nothing was streamed,
    /// nothing succeeded, or every answer had one token.
    TimeSummary times(const std::string& family, const std::string& suffix, int exponent);
    /// Numbers, texts and truth values that nobody asked for: `--metadata`, the load's settings,
    /// speculative decoding.
    [[nodiscard]] std::map<std::string, std::string> unread() const;

private:
    const nlohmann::json& object_;
    std::set<std::string> asked_;
};

}  // namespace servetune
