// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/outcome.hpp"

namespace servetune {

/// The audit's identity `order`: percentiles rise, the first token comes before the last, no time
/// is negative or none.
Validity audit_order(const BenchmarkResult& result);

}  // namespace servetune
