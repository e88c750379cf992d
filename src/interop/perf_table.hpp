// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {

/// Whether a text is the table of AIPerf (profile_export_aiperf.csv) or of GenAI-Perf
/// (profile_export_genai_perf.csv): a section of metrics that begins with `Metric,avg,min,max` or
/// `Metric,avg,sum`, or one of single values that counts requests.
bool is_perf_table(std::string_view text);

/// Its figures, as those of the JSON export beside it, rounded to two decimals. GenAI-Perf's table
/// is told by its missing standard deviations. Throws ParseError, which begins with `name`.
PublishedResult read_perf_table(std::string_view text, const std::string& name);

// ---- what the printed tables of both share with them (perf_console.cpp) ----

/// The title of a row, `Request Latency (ms)`: the metric's tag in the JSON export, or the title
/// itself where we have no figure for it, and the unit.
std::pair<std::string, std::string> perf_tag_and_unit(std::string_view title);
/// `5,919.16` as both print it, or without the commas.
std::optional<double> perf_number(std::string_view cell);
/// The result of metrics by their tags, as in the JSON export. GenAI-Perf gives the latency itself
/// as the time to the first token where answers do not stream: then neither is read.
PublishedResult perf_result(nlohmann::json metrics, bool genai_perf);

}  // namespace servetune
