// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/results/published.hpp"

#include <string>
#include <string_view>

namespace servetune {

/// Whether a text is the table of AIPerf (profile_export_aiperf.csv) or of GenAI-Perf (profile_export_genai_perf.csv):
/// a section of metrics that begins with `Metric,avg,min,max` or `Metric,avg,sum`, or one of single values that counts
/// requests.
bool is_perf_table(std::string_view text);

/// Its figures, as those of the JSON export beside it, rounded to two decimals. GenAI-Perf's table is told by its
/// missing standard deviations. Throws ParseError, which begins with `name`.
PublishedResult read_perf_table(std::string_view text, const std::string& name);

}  // namespace servetune
