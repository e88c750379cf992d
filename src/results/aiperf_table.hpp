// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/results/published.hpp"

#include <string>
#include <string_view>

namespace servetune {

/// Whether a text is AIPerf's table (profile_export_aiperf.csv): a section of metrics with `avg` and `std`, or one of
/// single values that counts requests. GenAI-Perf's table has no `std`.
bool is_aiperf_table(std::string_view text);

/// Its figures, as those of the JSON export beside it, rounded to two decimals. Throws ParseError, which begins with
/// `name`.
PublishedResult read_aiperf_table(std::string_view text, const std::string& name);

}  // namespace servetune
