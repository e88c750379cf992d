// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/engine_traits.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/perf/model_spec.hpp"
#include "servetune/detail/perf/serving_settings.hpp"

#include <cstdint>
#include <string>

namespace servetune {

/// An engine, a model and a chip, before any flag is chosen.
struct ServingTarget {
    ModelSpec model;
    HardwareSpec hardware;
    EngineTraits traits;
};

/// Where one device's memory goes, in bytes. `cache_bytes` is at least 0; what does not fit is in
/// `missing_bytes`.
struct MemoryPlan {
    double device_bytes = 0;
    double usable_bytes = 0;   ///< what the engine allows itself
    double context_bytes = 0;  ///< CUDA context, libraries
    double weights_bytes = 0;
    double activation_bytes = 0;  ///< at the largest step that the settings allow
    double graph_bytes = 0;
    double cache_bytes = 0;  ///< given to keys and values
    double state_bytes = 0;  ///< of linear layers, for as many sequences as the settings allow
    double free_bytes =
        0;  ///< left on the device beside all of these; negative: something will not fit
    double missing_bytes =
        0;  ///< that `usable_bytes` is too small by, before the first block of the cache
    double cache_bytes_per_token = 0;  ///< of one device
    std::int64_t cache_tokens = 0;     ///< whole blocks
    std::int64_t cache_blocks = 0;

    /// A table for people, in GiB.
    [[nodiscard]] std::string text() const;
};

/// What one step computes. Contexts are tokens that stand before a token; `windowed` ones are cut
/// at the model's sliding window.
struct StepWork {
    std::int64_t decode_sequences = 0;
    double decode_context_tokens = 0;  ///< summed over the sequences
    double decode_windowed_context_tokens = 0;
    std::int64_t prefill_sequences = 0;  ///< that have prompt tokens in this step
    std::int64_t prefill_finished = 0;   ///< of these, those that give their first token
    std::int64_t prefill_tokens = 0;
    double prefill_pairs = 0;  ///< summed over the prompt tokens: how many tokens each attends to
    double prefill_windowed_pairs = 0;
    double prefill_context_tokens =
        0;  ///< summed over the sequences: cache that is read, from earlier steps or other prompts
};

/// Where the time of a step goes, in seconds.
struct StepTime {
    double linear = 0;     ///< all matrix products with weights: max(compute, memory)
    double attention = 0;  ///< max(compute, memory) of prompts + of decoding
    double communication = 0;
    double draft = 0;   ///< guessing
    double device = 0;  ///< the sum, or the launching of kernels where that is slower
    double host = 0;    ///< scheduling, launching, sampling
    double total = 0;   ///< overlap: max(device, host); else their sum
};

/// Roofline of one serving engine with one choice of flags: bytes and seconds from first principles
/// and the engine's few factors.
///
/// Time of a step = max(operations / (FLOP/s x efficiency), bytes / (bandwidth x efficiency)) for
/// weights and for attention each (Williams, Waterman, Patterson: "Roofline", CACM 2009), +
/// exchanges between devices, + the host's work (docs/explanation/simulator.md has every formula).
/// Throws UsageError where the figures do not suffice: weights of this quantization unknown,
/// several devices without a known link, a size or share that is zero or negative.
///
///     const CostModel cost(target, settings);
///     const double tpot = cost.step({.decode_sequences = 1, .decode_context_tokens = 2048}).total;
class CostModel {
public:
    CostModel(const ServingTarget& target, const ServingSettings& settings);

    [[nodiscard]] const ServingTarget& target() const { return target_; }
    [[nodiscard]] const ServingSettings& settings() const { return settings_; }
    [[nodiscard]] const MemoryPlan& memory() const { return memory_; }

    /// O(1). Nothing to do takes no time.
    [[nodiscard]] StepTime step(const StepWork& work) const;

    /// Bytes that a step with so many tokens needs beside weights and cache.
    [[nodiscard]] double activation_bytes(std::int64_t tokens, std::int64_t sequences) const;
    /// Keys and values of a context of so many tokens, in all layers, on all devices together.
    [[nodiscard]] double cache_bytes(std::int64_t tokens) const;
    /// Bytes a second that one of so many devices together sends to another of them, at most.
    /// Throws UsageError where it is not known, or a node has fewer.
    [[nodiscard]] double link(std::int64_t devices) const;
    /// From the start of the process to the first answer.
    [[nodiscard]] double start_seconds() const;
    /// Tokens that one sequence gets from one step on average, 1 without speculation: (1 - a^(k+1))
    /// / (1 - a) for k guesses of which each is right with chance a (Leviathan et al., ICML 2023,
    /// equation 1).
    [[nodiscard]] double tokens_per_step() const;
    /// The longest request (prompt and answer) that the settings and the model allow.
    [[nodiscard]] std::int64_t max_context_tokens() const;

private:
    ServingTarget target_;
    ServingSettings settings_;
    MemoryPlan memory_;
    ModelWeights weights_;
    // One device, one pass over the weights (docs/explanation/simulator.md, "Weights").
    double shared_bytes_ = 0;            ///< read whatever the tokens
    double expert_bytes_ = 0;            ///< all experts together
    double flops_per_token_ = 0;         ///< without those of experts
    double expert_flops_per_token_ = 0;  ///< of the experts that a token chooses
    double head_flops_ = 0;              ///< per sampled token
    AttentionTraits attention_;

    /// A KernelEfficiency on this chip.
    struct Kernel {
        double operations_per_second = 0;
        double bytes_per_second = 0;
        double seconds = 0;  ///< of each call, more
        double sharpness = 0;
        double measured = 0;  ///< 1: by a table, 0: by the engine's own figures
        /// Without `seconds`.
        [[nodiscard]] double time(double operations, double bytes) const;
    };
    Kernel gemm_, moe_, prefill_, decode_, window_prefill_, window_decode_;
    [[nodiscard]] Kernel kernel(const std::string& operation, const std::string& type) const;

    void plan_memory();
    [[nodiscard]] double linear_seconds(double tokens, double sampled) const;
    [[nodiscard]] double attention_seconds(const StepWork& work, double checked) const;
    [[nodiscard]] double communication_seconds(double tokens) const;
    /// Without a graph the host launches each kernel.
    [[nodiscard]] double launch_seconds() const;
    [[nodiscard]] double draft_seconds(double sequences) const;
};

}  // namespace servetune
