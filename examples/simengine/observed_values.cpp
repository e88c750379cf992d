// SPDX-License-Identifier: Apache-2.0
#include "observed_values.hpp"

#include <algorithm>
#include <utility>

namespace simengine {
namespace {

struct EngineBuckets {
    std::vector<double> first_token, token_gap, latency, tokens;
};

EngineBuckets buckets_of_vllm(std::int64_t max_context_tokens) {
    std::vector<double> tokens;  // 1, 2, 5, 10, ... up to the context
    for (double ten = 1; ten <= static_cast<double>(max_context_tokens); ten *= 10)
        for (const double step : {1.0, 2.0, 5.0})
            if (step * ten <= static_cast<double>(max_context_tokens)) tokens.push_back(step * ten);
    return {{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
             1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0},
            {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
             10.0, 20.0, 40.0, 80.0},
            {0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
             30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0},
            std::move(tokens)};
}

EngineBuckets buckets_of_sglang() {
    return {{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400},
            {0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06,
             0.08,  0.1,   0.2,   0.4,   0.6,  0.8,   1,    2,     4,    6,     8},
            {0.1, 0.2, 0.4, 0.6, 0.8, 1,   2,   4,   6,    8,    10,
             20,  40,  60,  80,  100, 200, 400, 600, 1200, 1800, 2400},
            {100,    300,    500,    700,    1000,   1500,   2000,    3000,   4000,
             5000,   6000,   7000,   8000,   9000,   10000,  12500,   15000,  17500,
             20000,  22500,  25000,  27500,  30000,  35000,  40000,   60000,  80000,
             100000, 200000, 300000, 400000, 600000, 800000, 1000000, 1100000}};
}

}  // namespace

void ObservedValues::add(double value) {
    const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
    ++counts[static_cast<std::size_t>(bucket)];
    sum += value;
}

std::map<std::string, ObservedValues, std::less<>> histograms_of(EngineKind kind,
                                                                 std::int64_t max_context_tokens) {
    if (kind != EngineKind::vllm && kind != EngineKind::sglang) return {};
    const EngineBuckets all =
        kind == EngineKind::vllm ? buckets_of_vllm(max_context_tokens) : buckets_of_sglang();
    std::map<std::string, ObservedValues, std::less<>> result;
    const auto add = [&](const char* name, const std::vector<double>& bounds) {
        result[name] = {bounds, std::vector<std::uint64_t>(bounds.size() + 1), 0};
    };
    add("first_token_seconds", all.first_token);
    add("token_gap_seconds", all.token_gap);
    add("per_token_seconds", all.token_gap);
    add("latency_seconds", all.latency);
    add("request_prompt_tokens", all.tokens);
    add("request_generated_tokens", all.tokens);
    return result;
}

}  // namespace simengine
