// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"
#include "servetune/parameter.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// An attention back end: how near it comes to the chip's peaks, and what it takes.
struct AttentionTraits {
    double prefill_efficiency =
        0;  ///< of the peak FLOP/s, of the products of queries, keys and values
    double decode_efficiency = 0;  ///< of the memory bandwidth, reading the cache
    std::vector<std::string>
        cache_types{};  ///< of keys and values that it has kernels for; empty: all
    /// the chips that these figures are of (detail/perf/hardware_spec.hpp); empty: any
    std::vector<std::string> architectures{};

    [[nodiscard]] bool takes(const std::string& cache_type, const std::string& architecture) const {
        return (cache_types.empty() || contains(cache_types, cache_type)) &&
               (architectures.empty() || contains(architectures, architecture));
    }
};

/// How near one kind of kernel comes to a chip's peaks: a call takes
///
///     seconds + ((operations / (peak FLOP/s x compute))^sharpness +
///                (bytes / (peak bandwidth x bandwidth))^sharpness)^(1 / sharpness)
///
/// What operations and bytes are: docs/explanation/simulator.md, "Kernels". In an exchange between
/// devices `seconds` stand where the operations do. `sharpness` 0: the longer of the two counts.
struct KernelEfficiency {
    double compute = 0;    ///< 0: not of such kernels (exchanges)
    double bandwidth = 0;  ///< of the memory; of the link, one direction, for exchanges
    double seconds = 0;
    double sharpness = 0;
};

/// What an engine uses by itself for a parameter that is not set; the first of a list that fits
/// counts.
struct DefaultRule {
    Value value;
    double from_memory_bytes = 0;         ///< on devices with at least so much
    std::vector<std::string> hardware{};  ///< on these only; empty: any
    std::vector<Condition> when{};        ///< and where the command sets all of these
};

/// What nine of ten measured / predicted were within, in a group of measured rows predicted by
/// figures that were fitted without any row of their model (benchmarks/accuracy). Of a list the
/// first that fits counts.
struct CostCheck {
    std::string since{};  ///< engine versions of the rows; empty: any
    std::string until{};
    std::string hardware{};  ///< a chip, or an architecture; empty: any
    std::string models{};    ///< `dense` or `experts`; empty: any
    std::size_t rows = 0;
    std::string of{};                              ///< the models of the rows
    std::vector<double> output_tokens_per_second;  ///< lowest, highest; empty: not known
    std::vector<double> time_per_output_token;
    std::vector<double> time_to_first_token;
    /// Standard deviation of ln(measured / predicted) of output tokens/s between rows of one
    /// setup; 0: not known.
    double within = 0;
};

/// What the cost model knows of an engine: a handful of factors, each measured, fitted
/// (benchmarks/accuracy) or taken from a source that search_spaces/traits/<engine>.yaml names. All
/// are of one device unless said.
struct EngineTraits {
    /// What ServingSettings::memory_fraction is a share of.
    enum class FractionOf {
        device,  ///< all the engine may use, everything in it (vLLM)
        /// weights and cache together; activations and graphs take the rest of the device (SGLang)
        weights_cache,
        free,  ///< the cache alone, of what is free after loading (TensorRT-LLM)
        none   ///< the cache is as large as asked for (llama.cpp)
    };

    std::string engine;
    FractionOf fraction_of = FractionOf::device;

    // ---- speed
    /// number type -> share of its peak FLOP/s in large products; `other`
    std::map<std::string, double, std::less<>> compute_efficiency{};
    double bandwidth_efficiency = 0;  ///< share of the memory bandwidth while weights are read
    /// chip -> kind of kernel and type, `gemm.fp8`, `all_reduce.8` -> measured efficiency
    /// (search_spaces/kernels); for chips without it what is above and `attention` counts
    std::map<std::string, std::map<std::string, KernelEfficiency, std::less<>>, std::less<>>
        kernels{};
    double step_overhead_seconds = 0;      ///< host: scheduling, launching, sampling, of every step
    double sequence_overhead_seconds = 0;  ///< host: more for each sequence in a step
    double layer_seconds = 0;              ///< device: more for each layer of a step
    /// of a measured kernel's own seconds, what a call takes in a recorded graph, where the next
    /// one is ready when it ends
    double kernel_call_share = 1;
    double kernel_seconds = 0;  ///< of each call on a chip without measured kernels
    /// device: more for each layer, of a step's tokens x hidden size: element-wise kernels
    double layer_bytes_per_token_and_width = 0;
    double eager_layer_seconds = 0;         ///< launching the kernels of one layer without a graph
    double eager_expert_layer_seconds = 0;  ///< the same of a layer with experts; 0: no more
    bool prompts_in_graphs = true;          ///< steps with prompts run as recorded graphs, too
    /// experts are spread over data-parallel replicas, which then work in step, unless told
    bool replicas_share_experts = false;
    double uncompiled_factor = 1;  ///< of the device's time without torch.compile, >= 1
    double request_overhead_seconds =
        0;  ///< front end: parsing, template, tokenizer; one request after the other per process
    /// front end: more until a request is at the scheduler and its first token at the client,
    /// which keeps no other waiting
    double request_latency_seconds = 0;
    double chunk_overhead_seconds = 0;  ///< front end: detokenizer and one streamed event
    /// latency of one exchange between devices: 7 to 15 us (vLLM pull requests 24111 and 42324)
    double all_reduce_seconds = 1e-5;
    double link_efficiency =
        0.7;  ///< share of the link's bandwidth in large exchanges (vLLM pull request 42324)
    std::string default_attention{};  ///< a key of `attention`
    std::map<std::string, AttentionTraits, std::less<>> attention{};
    /// Method of speculation -> chance that a guess is right, in [0, 1). eagle3 and eagle: vLLM
    /// issue 20780 (Llama-3.1-8B, MT-bench); mtp: DeepSeek-V3 report, 5.4.3 (85 to 90 %); ngram on
    /// chat and draft_model: assumed.
    std::map<std::string, double, std::less<>> acceptance{
        {"eagle3", 0.765}, {"eagle", 0.63}, {"mtp", 0.85}, {"ngram", 0.30}, {"draft_model", 0.70}};

    // ---- memory
    double context_bytes = 0;                         ///< CUDA context, libraries, workspaces
    double activation_bytes_per_token_and_width = 0;  ///< x tokens of a step x hidden size
    double logits_bytes_per_entry = 0;                ///< x sequences of a step x vocabulary
    double graph_bytes = 0;                           ///< of recording graphs at all
    double graph_bytes_per_size = 0;                  ///< more for each recorded size
    bool checks_context =
        false;  ///< refuses to start when one request of max_context_tokens does not fit the cache

    // ---- start
    double start_seconds = 0;          ///< imports, processes, connections
    double load_bytes_per_second = 0;  ///< weights from disk to device
    double compile_seconds = 0;        ///< once
    double graph_seconds_per_size = 0;

    // ---- what it does by itself, where no parameter of its engine file says otherwise
    bool whole_prompts_raise_budget =
        false;  ///< without chunked prefill a step holds the longest context, unless told otherwise
    double reserved_share = 0;
    /// share of the cache's memory that states of sequences take at most: then it serves as many as
    /// fit there; 0: those of all its sequences have to fit
    double state_share = 0;
    std::map<std::string, std::vector<DefaultRule>, std::less<>>
        defaults{};  ///< by device, of the engine's own parameters

    std::map<std::string, std::vector<std::string>, std::less<>>
        log{};  ///< event -> lines as the engine prints them, {figures} to fill in
    std::vector<CostCheck> checked{};

    /// That a guess of this method is right. Throws UsageError where it is not known.
    [[nodiscard]] double acceptance_of(const std::string& method) const {
        const auto found = acceptance.find(method);
        if (found == acceptance.end())
            throw UsageError("how often guesses of '" + method +
                             "' are right is not known (acceptance in traits/" + engine + ".yaml)");
        return found->second;
    }
    /// Where a chip has none for a type, of the next wider type, which `type` then is: as its
    /// kernels then compute.
    [[nodiscard]] const KernelEfficiency* kernel(const std::string& chip,
                                                 const std::string& operation,
                                                 std::string& type) const {
        const auto known = kernels.find(chip);
        if (known == kernels.end()) return nullptr;
        while (true) {
            if (const auto found = known->second.find(operation + "." + type);
                found != known->second.end())
                return &found->second;
            if (type == "mxfp4") type = "mxfp4_fp8";
            else if (type == "mxfp4_fp8") type = "int4";
            else if (type == "fp8_block" || type == "fp4") type = "fp8";
            else if (type == "fp8" || type == "int4" || type == "int8" || type == "fp16")
                type = "bf16";
            else return nullptr;
        }
    }
    [[nodiscard]] double compute(std::string_view type) const {
        const auto found = compute_efficiency.find(type == "fp8_block" ? "fp8"
                                                   : type == "int4"    ? "bf16"
                                                                       : type);
        return found != compute_efficiency.end() ? found->second : compute_efficiency.at("other");
    }
};

}  // namespace servetune
