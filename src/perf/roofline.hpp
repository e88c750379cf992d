// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/perf/model_spec.hpp"

#include <optional>

namespace servetune {

/// What no engine passes, whatever its flags (Williams, Waterman, Patterson: "Roofline", CACM 2009,
/// at efficiency 1): the audit's limits. CostModel has the efficiencies and everything else that
/// takes time.

/// Seconds between two tokens of one stream: a step reads every active weight once, and gives a
/// stream at most `tokens_per_step` tokens (above 1: speculation), however many streams share it.
inline double least_seconds_per_token(const ModelWeights& weights, const HardwareSpec& hardware,
                                      double devices, double tokens_per_step = 1) {
    return weights.per_token / (hardware.memory_bandwidth_bytes_per_second * devices) /
           tokens_per_step;
}

/// Prompt tokens per second: 2 operations for each active parameter, without the embeddings (the
/// output head works for the last token only); attention comes on top. From a cache they cost
/// nothing. Nothing where the chip's or the model's figures are not known.
inline std::optional<double> most_prompt_tokens_per_second(const ModelSpec& model,
                                                           const ModelWeights& weights,
                                                           const HardwareSpec& hardware,
                                                           double devices) {
    const auto flops = hardware.flops(weights.computes_in);
    const double parameters = model.parameters_active - model.parameters_embedding;
    if (!flops || !(parameters > 0)) return std::nullopt;
    return *flops * devices / (2 * parameters);
}

}  // namespace servetune
