// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/results/published.hpp"

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The JSON formats of results that read_results knows: how each is recognised, and read.
struct ResultFormat {
    std::string_view tool;
    std::string_view keys;  ///< what it is recognised by, for messages
    bool (*recognises)(const nlohmann::json& value);
    std::vector<PublishedResult> (*read)(const nlohmann::json& value);
};

extern const ResultFormat servetune_format, vllm_format, sglang_format;  // result_serving.cpp
extern const ResultFormat guidellm_format, gpustack_format;              // result_guidellm.cpp
extern const ResultFormat genai_perf_format, aiperf_format;              // result_aiperf.cpp
extern const ResultFormat inference_perf_format, llama_bench_format;     // result_stages.cpp

// ---- what they share (result_json.cpp) ----

using JsonPath = std::initializer_list<std::string_view>;

/// The node at a path of keys; nullptr when any is missing or its parent is no object.
const nlohmann::json* node_at(const nlohmann::json& value, JsonPath path);
/// The number at a path: finite and not negative, times ten to the `exponent` (the double nearest to the decimal).
/// Anything else is no figure: null, text in the place of a number, -1 for "not known".
std::optional<double> figure_at(const nlohmann::json& value, JsonPath path, int exponent = 0);
/// The text at a path in one line, cut to 500 bytes; empty when there is none.
std::string text_at(const nlohmann::json& value, JsonPath path);
/// A number, a truth value or a text as one line; nothing for null, arrays and objects.
std::optional<std::string> scalar_text(const nlohmann::json& value);
/// Control characters become blanks: names from files go into tables.
std::string one_line(std::string_view text);

}  // namespace servetune
