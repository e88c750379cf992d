// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/cost_model.hpp"

#include <cstdint>

namespace servetune::test {

inline constexpr double us = 1e-6;  ///< seconds

/// A made-up model on a made-up chip whose times can be added up by hand: a step reads the weights
/// in 1 ms and each token of context in 0.1 us, computes in no time, and nothing else costs
/// anything.
inline ServingTarget small_target() {
    ServingTarget target;
    target.model.name = "made/up";
    target.model.parameters_active = 5e8;
    target.model.tied_embeddings = true;
    target.model.layers = target.model.attention_layers = 10;
    target.model.hidden_size = 1000;
    target.model.attention_heads = target.model.kv_heads = 25;
    target.model.head_dim = 100;
    target.model.vocabulary = 1000;
    target.model.context_tokens = 1'000'000;
    target.model.kv_bytes_per_token_16bit = 1e5;
    target.model.native_type = "bf16";
    target.model.weights["bf16"] = {.bytes = 1e9, .per_token = 1e9, .computes_in = "bf16"};
    target.hardware.name = "made-up";
    target.hardware.memory_bytes = 1e15;
    target.hardware.memory_bandwidth_bytes_per_second = 1e12;
    target.hardware.flops_per_second["bf16"] = 1e30;
    target.traits.engine = "made-up";
    target.traits.fraction_of = EngineTraits::FractionOf::none;
    target.traits.compute_efficiency["other"] = 1;
    target.traits.bandwidth_efficiency = 1;
    target.traits.default_attention = "plain";
    target.traits.attention["plain"] = {.prefill_efficiency = 1, .decode_efficiency = 1};
    target.traits.acceptance["ngram"] = 0.7;
    return target;
}

/// A cache of so many tokens; everything else so large that it decides nothing.
inline ServingSettings small_settings(std::int64_t cache_tokens = 160'000) {
    ServingSettings settings;
    settings.quantization = "bf16";
    settings.cache_tokens = cache_tokens;
    return settings;
}

}  // namespace servetune::test
