// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/speed_factors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace servetune {

std::string SpeedFactors::text() const {
    std::array<char, 96> line{};
    (void)std::snprintf(line.data(), line.size(),
                        "compute x %.3g, bandwidth x %.3g, overhead x %.3g", compute, bandwidth,
                        overhead);
    return line.data();
}

EngineTraits scaled(EngineTraits traits, const SpeedFactors& factors) {
    const auto scale = [](double& share, double factor) {
        share = std::clamp(share * factor, std::min(share, 0.01), std::max(share, 1.0));
    };
    for (auto& [type, efficiency] : traits.compute_efficiency) scale(efficiency, factors.compute);
    scale(traits.bandwidth_efficiency, factors.bandwidth);
    for (auto& [chip, kernels] : traits.kernels)
        for (auto& [name, kernel] : kernels) {
            scale(kernel.compute, factors.compute);
            scale(kernel.bandwidth, factors.bandwidth);
            kernel.seconds *= factors.overhead;
        }
    for (auto& [name, attention] : traits.attention) {
        scale(attention.prefill_efficiency, factors.compute);
        scale(attention.decode_efficiency, factors.bandwidth);
    }
    for (double* seconds : {&traits.step_overhead_seconds, &traits.sequence_overhead_seconds,
                            &traits.layer_seconds, &traits.eager_layer_seconds,
                            &traits.eager_expert_layer_seconds, &traits.request_overhead_seconds,
                            &traits.request_latency_seconds, &traits.chunk_overhead_seconds})
        *seconds *= factors.overhead;
    return traits;
}

}  // namespace servetune
