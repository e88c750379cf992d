// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of files with facts: hardware, models, traits of engines. Tables as in keys.hpp.

#include "keys.hpp"

namespace servetune::keys {

inline constexpr struct HardwareKeys : FactsKeys<HardwareSpec> {
    using T = HardwareSpec;
    static constexpr std::string_view called = "hardware";
    Key hardware = row<&T::name>("hardware", is::text, "its name, and its file's", required);
    BOUND_KEY(architecture, is::one_of<architectures>, "what decides which kernels it runs",
              required);
    BOUND_KEY(memory_bytes, is::positive, "as its driver reports them", required);
    BOUND_KEY(memory_bandwidth_bytes_per_second, is::positive, "the vendor's peak", required);
    BOUND_KEY(flops_per_second, is::mapping_of<is::positive>,
              "number type (fp16 bf16 fp8 int8 fp4) -> dense matrix operations, the vendor's peak",
              required);
    BOUND_KEY(shared_memory, is::boolean, "the CPU uses the same memory (false)");
    BOUND_KEY(link_bytes_per_second, is::positive, "to its neighbours, both directions together");
    BOUND_KEY(devices_per_node, is::integer_from<1>, "that this link joins (as many as there are)");
    BOUND_KEY(network_bytes_per_second, is::positive,
              "of one device to another node, one direction");
    BOUND_KEY(
        unverified, is::list_of<is::text>,
        "keys of figures seen in no data sheet, also flops_per_second.fp8; `validate` names them");
} hardware{};

inline constexpr struct WeightsKeys {
    using T = ModelWeights;
    static constexpr std::string_view called = "weights";
    BOUND_KEY(bytes, is::positive, "the checkpoint", required);
    BOUND_KEY(per_token, is::positive, "what one decoded token of one stream reads of it",
              required);
} weights{};

inline constexpr struct ModelKeys : FactsKeys<ModelSpec> {
    using T = ModelSpec;
    static constexpr std::string_view called = "model";
    Key model = row<&T::name>("model", is::text, "its name on a hub", required);
    BOUND_KEY(parameters_active, is::positive, "that work for one token, both embeddings included",
              required);
    BOUND_KEY(tied_embeddings, is::boolean, "the output head is the input embedding (false)");
    BOUND_KEY(layers, is::integer_from<0>, "of the language model", required);
    BOUND_KEY(attention_layers, is::integer_from<0>,
              "those whose cache grows with the context (all)");
    BOUND_KEY(hidden_size, is::integer_from<0>, "width", required);
    BOUND_KEY(attention_heads, is::integer_from<0>, "of the queries", required);
    BOUND_KEY(kv_heads, is::integer_from<0>, "of keys and values", required);
    BOUND_KEY(head_dim, is::integer_from<0>, "width of one head", required);
    BOUND_KEY(vocabulary, is::integer_from<0>, "tokens", required);
    BOUND_KEY(context_tokens, is::integer_from<1>, "the longest prompt and answer it was made for",
              required);
    BOUND_KEY(experts, is::integer_from<0>, "per layer; 0: dense (0)");
    BOUND_KEY(experts_per_token, is::integer_from<0>, "routed; 0: dense (0)");
    BOUND_KEY(kv_bytes_per_token_16bit, is::positive,
              "cache of one token in all layers, at 16 bits (keys and values of all heads)");
    BOUND_KEY(sliding_window, is::integer_from<0>,
              "tokens that sliding layers look back; 0: none (0)");
    BOUND_KEY(sliding_layers, is::integer_from<0>,
              "of the attention layers, those with the window (0)");
    BOUND_KEY(weights, is::some<is::mapping_of<is::keyed<keys::weights>>>,
              "quantization -> checkpoint; the first is the one that is published", required);
} model{};

inline constexpr struct AttentionKeys : ArchitecturesKeys<&AttentionTraits::architectures> {
    using T = AttentionTraits;
    static constexpr std::string_view called = "attention";
    BOUND_KEY(prefill_efficiency, is::efficiency, "share of the peak FLOP/s of bf16", required);
    BOUND_KEY(decode_efficiency, is::efficiency, "share of the memory bandwidth, reading the cache",
              required);
    BOUND_KEY(cache_types, is::list_of<is::text>,
              "of keys and values that it has kernels for (all)");
} attention{};

inline constexpr struct DefaultRuleKeys {
    using T = DefaultRule;
    static constexpr std::string_view called = "default_rule";
    BOUND_KEY(value, is::value, "what the engine uses", required);
    BOUND_KEY(from_memory_bytes, is::number_from<0>, "on devices with at least so much (0)");
    BOUND_KEY(hardware, is::list_of<is::text>, "on these only");
    BOUND_KEY(when, is::conditions,
              "and only where the command sets these parameters to one of these values");
} default_rule{};

inline constexpr struct CostCheckKeys {
    using T = CostCheck;
    static constexpr std::string_view called = "cost_check";
    BOUND_KEY(hardware, is::name, "the chip that the rows were measured on", required);
    BOUND_KEY(rows, is::integer_from<1>, "measured rows", required);
    BOUND_KEY(median_error, is::number_from<0>,
              "of predicted / measured - 1, in rows that its fit left out", required);
    BOUND_KEY(error_90, is::number_from<0>, "nine of ten errors are within it", required);
    BOUND_KEY(of, is::text, "engine versions and models of the rows", required);
} cost_check{};

/// What an engine's version changes. The file must have the first five and may leave out the rest;
/// below `before` each may be left out.
struct VersionTraitsKeys {
    using T = EngineTraits;
    BOUND_KEY(
        compute_efficiency, is::mapping_of<is::efficiency>,
        "number type (bf16 fp8 ... other) -> share of the peak FLOP/s in products with weights");
    BOUND_KEY(bandwidth_efficiency, is::efficiency,
              "share of the memory bandwidth while weights are read");
    BOUND_KEY(step_overhead_seconds, is::number_from<0>, "the host's work for a step");
    BOUND_KEY(sequence_overhead_seconds, is::number_from<0>,
              "the host's work for each sequence of a step");
    BOUND_KEY(request_overhead_seconds, is::number_from<0>,
              "front end, per request: parsing, template, tokenizer");
    BOUND_KEY(layer_seconds, is::number_from<0>,
              "the device's time for each layer of a step, whatever its size (0)");
    BOUND_KEY(defaults, is::mapping_of<is::list_of<is::keyed<keys::default_rule>>>,
              "parameter -> what it comes to by device; the first that fits counts");
    BOUND_KEY(checked, is::list_of<is::keyed<keys::cost_check>>,
              "how far predictions were from what was measured, by chip");
};

inline constexpr struct EarlierTraitsKeys : VersionTraitsKeys {
    static constexpr std::string_view called = "earlier_traits";
} earlier_traits{};

inline constexpr struct DefectKeys {
    using T = Defect;
    static constexpr std::string_view called = "defect";
    BOUND_KEY(because, is::text, "why; shown when it happens", required);
    BOUND_KEY(kind, is::one_of<defect_kinds>, "what happens", required);
    BOUND_KEY(when, is::expression, "an expression over the engine's own parameters", required);
    BOUND_KEY(seconds, is::number_from<0>, "slow_start: longer; else: into the start or the load",
              required);
    BOUND_KEY(lines, is::list_of<is::text>, "of the log");
} defect{};

inline constexpr struct TraitsKeys : VersionTraitsKeys {
    using T = EngineTraits;
    static constexpr std::string_view called = "traits";
    BOUND_KEY(engine, is::text, "the engine whose speed and memory this describes", required);
    WORD_KEY(fraction_of, memory_fractions, "what its memory fraction is a share of", required);
    BOUND_KEY(eager_layer_seconds, is::number_from<0>, "launching one layer without a graph",
              required);
    BOUND_KEY(chunk_overhead_seconds, is::number_from<0>, "front end, per streamed event",
              required);
    BOUND_KEY(attention, is::some<is::mapping_of<is::keyed<keys::attention>>>,
              "back end -> what it reaches; the first is the default", required);
    BOUND_KEY(context_bytes, is::number_from<0>, "CUDA context, libraries, workspaces", required);
    BOUND_KEY(activation_bytes_per_token_and_width, is::number_from<0>,
              "times tokens of a step, times hidden size", required);
    BOUND_KEY(logits_bytes_per_entry, is::number_from<0>,
              "times sequences of a step, times vocabulary", required);
    BOUND_KEY(graph_bytes, is::number_from<0>, "recording graphs at all (0)");
    BOUND_KEY(graph_bytes_per_size, is::number_from<0>, "and for each size (0)");
    BOUND_KEY(
        checks_context, is::boolean,
        "refuses to start when one request of the longest context does not fit the cache (false)");
    BOUND_KEY(start_seconds, is::number_from<0>, "imports and processes", required);
    BOUND_KEY(load_bytes_per_second, is::positive, "weights from disk to device", required);
    BOUND_KEY(compile_seconds, is::number_from<0>, "once (0)");
    BOUND_KEY(graph_seconds_per_size, is::number_from<0>, "recording (0)");
    BOUND_KEY(whole_prompts_raise_budget, is::boolean,
              "without chunked prefill a step holds the longest context (false)");
    BOUND_KEY(reserved_share, is::number_from<0>,
              "of the tokens still to come, kept free at admission, by itself (0)");
    FREE_KEY(before, is::mapping_of<is::keyed<keys::earlier_traits>>,
             "engine version -> what was different before it; the newest first");
    BOUND_KEY(log, is::mapping_of<is::list_of<is::text>>,
              "event -> lines as the engine prints them, with {figures}");
    BOUND_KEY(defects, is::list_of<is::keyed<keys::defect>>,
              "what goes wrong with certain flags though every rule allows them");
    FREE_KEY(sources, is::mapping_of<is::text>,
             "key -> where its figure is from; every figure has one", required);
} traits{};

inline constexpr struct RecipeKeys : EnvironmentKeys<&Recipe::command, &Command::environment>,
                                     SinceKeys<&Recipe::since>,
                                     UntilKeys<&Recipe::until> {
    using T = Recipe;
    static constexpr std::string_view called = "recipe";
    BOUND_KEY(models, is::some<is::list_of<is::text>>,
              "what it was published for, without a quantization: Qwen/Qwen3-8B", required);
    BOUND_KEY(alike, is::list_of<is::text>, "others of the same family and size class");
    BOUND_KEY(quantization, is::word,
              "of the checkpoint: fp8, fp4, awq (the one in the models' own name)");
    BOUND_KEY(hardware, is::list_of<is::name>, "the chips that it was published for", required);
    BOUND_KEY(goal, is::one_of<recipe_goals>, "what its source made it for");
    BOUND_KEY(source, is::text, "where it was published", required);
    FREE_KEY(flags, is::text, "as in a command, in any spelling, without the model");
    FREE_KEY(settings, is::mapping_of<is::value>,
             "dotted path in the engine's options file -> value");
    BOUND_KEY(measured, is::text, "the gain that the source measured");
    BOUND_KEY(licence, is::text, "of the source", required);
} recipe{};

inline constexpr struct RecipesKeys {
    static constexpr std::string_view called = "recipes";
    FREE_KEY(engine, is::text, "the engine that is started, and the file's name", required);
    FREE_KEY(recipes, is::list_of<is::keyed<keys::recipe>>,
             "published deployments; of equals the first is taken", required);
} recipes{};

}  // namespace servetune::keys
