// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace servetune {

/// Which metric of a goal or a limit a measurement lacks that none before it had either, in words
/// that name what it has; empty: none. A study would run to its end and nothing in it could win.
/// Not asked of a table's fixed rows, of what is only reported, and of what the audit refuses.
std::string missing_metric(const Problem& problem, std::span<const Trial> trials,
                           const Trial& trial, const Outcome& outcome);

}  // namespace servetune
