// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialect.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace simengine {

/// A histogram as Prometheus' client keeps it.
struct ObservedValues {
    std::vector<double> bounds{};
    std::vector<std::uint64_t> counts{};  ///< of each bucket, not cumulative; one more than bounds
    double sum = 0;

    void add(double value);
};

/// The histograms that an engine publishes, by our names (`counters` of its file), in the engine's
/// own buckets: vllm/v1/metrics/buckets.py of 0.32.0, sglang/srt/observability/metrics_collector.py
/// of 0.5.23. llama.cpp and trtllm-serve have none.
std::map<std::string, ObservedValues, std::less<>> histograms_of(EngineKind kind,
                                                                 std::int64_t max_context_tokens);

}  // namespace simengine
