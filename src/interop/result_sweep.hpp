// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Columns that a sweep's table has (summary.csv of `vllm bench sweep`), in any order, among
/// others.
inline constexpr std::array<std::string_view, 3> sweep_columns{"duration", "completed",
                                                               "request_throughput"};

bool is_sweep_table(std::string_view text);

/// One result a row of such a table. Throws ParseError, which begins with `name`, for a row without
/// these three numbers or of another length, and for a table without a row.
std::vector<PublishedResult> read_sweep_table(std::string_view text, const std::string& name);

}  // namespace servetune
