// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/load_test.hpp"

namespace servetune {

/// Sets statistics, validity and what was not checked of a load test whose plan, handshake and run
/// are there: all that follows from what was sent and what came back. Pure; asks no server. Of
/// `test` only workload, limits, `known` and the number of replicas count.
void judge_load_test(const LoadTest& test, LoadTestResult& result);

}  // namespace servetune
