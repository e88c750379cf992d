// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace servetune {

inline constexpr double gib = 1024.0 * 1024 * 1024;  ///< bytes

/// How guesses are made that a step then checks, many tokens at once.
struct Speculation {
    /// none (empty), ngram, mtp, eagle, eagle3, medusa, draft_model: a key of
    /// EngineTraits::acceptance
    std::string method{};
    std::int64_t tokens = 0;  ///< guessed for each sequence and step; 0: no speculation
    /// weights of a separate draft model; 0: the guesses come from one more layer, or from no
    /// weights (ngram)
    double draft_bytes = 0;
};

/// What the flags of any engine come down to: the few figures that decide memory and speed.
/// detail/predict/serving.hpp reads them from a configuration or a command; the initialisers are no
/// engine's defaults.
struct ServingSettings {
    std::string quantization{};           ///< a key of ModelSpec::weights
    std::string cache_type = "bf16";      ///< of keys and values: bf16, fp8_e4m3, q8_0, ...
    double cache_bits = 16;               ///< per key or value kept, scales included: q8_0 has 8.5
    double memory_fraction = 0.9;         ///< of what EngineTraits::fraction_of says, in (0, 1]
    std::optional<double> cache_bytes{};  ///< per device, instead of what memory_fraction leaves
    std::optional<std::int64_t>
        cache_tokens{};  ///< at most (or exactly, where the engine allocates a fixed cache)
    std::int64_t max_sequences = 256;  ///< in one step
    std::int64_t max_batched_tokens =
        8192;  ///< in one step: prompt tokens, and one (or a guess more) per decoding sequence
    std::int64_t micro_batch_tokens = 0;  ///< in one pass over the weights; 0: all of a step
    std::int64_t max_context_tokens =
        0;  ///< prompt and answer of one request; 0: what the model was made for
    std::int64_t block_tokens = 16;  ///< the cache is given out in blocks of so many
    bool prefix_cache = true;        ///< blocks of earlier prompts are kept and used again
    bool chunked_prefill = true;     ///< a prompt may be spread over steps
    /// prompts and decoding in one step; false: while a prompt waits and fits, decoding waits too
    bool mixed_steps = true;
    bool overlap = true;  ///< the host prepares the next step while the device computes
    /// of the tokens a request may still make, kept free when it is admitted; 1: nothing is ever
    /// preempted
    double reserved_share = 0;
    std::int64_t graph_max_tokens =
        512;               ///< steps up to so many tokens run as recorded graphs; 0: none do
    bool compiled = true;  ///< torch.compile or the like
    std::string
        attention_backend{};  ///< a key of EngineTraits::attention; empty: the engine's choice
    std::int64_t tensor_parallel = 1;
    std::int64_t pipeline_parallel = 1;
    std::int64_t data_parallel = 1;  ///< replicas that share the requests
    /// of the tensor-parallel devices, groups that each have all of attention's weights and serve
    /// their own requests
    std::int64_t attention_data_parallel = 1;
    bool expert_parallel = false;  ///< experts are spread whole over the devices instead of cut
    Speculation speculation{};
    std::int64_t stream_interval = 1;  ///< tokens that are sent to the client together
    std::int64_t front_ends = 1;       ///< processes that take requests and write answers
    double weight_offload_bytes =
        0;  ///< per device, kept in the host's memory and read over its link in every step

    [[nodiscard]] std::int64_t devices() const {
        return tensor_parallel * pipeline_parallel * data_parallel;
    }
};

}  // namespace servetune
