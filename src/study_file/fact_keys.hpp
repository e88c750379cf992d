// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of files with facts: hardware, models, traits of engines. Tables as in keys.hpp.

#include "keys.hpp"
#include "model_files.hpp"

namespace servetune::keys {

inline constexpr struct HardwareKeys : FactsKeys<HardwareSpec> {
    using T = HardwareSpec;
    static constexpr std::string_view called = "hardware";
    Key hardware = row<&T::name>("hardware", is::text, required);
    BOUND_KEY(architecture, is::one_of<architectures>, required);
    BOUND_KEY(memory_bytes, is::positive, required);
    BOUND_KEY(memory_bandwidth_bytes_per_second, is::positive, required);
    BOUND_KEY(flops_per_second, is::mapping_of<is::positive>, required);
    BOUND_KEY(shared_memory, is::boolean);
    BOUND_KEY(link_bytes_per_second, is::positive);
    BOUND_KEY(devices_per_node, is::integer_from<1>);
    BOUND_KEY(unverified, is::list_of<is::text>);
} hardware{};

inline constexpr struct WeightsKeys {
    using T = ModelWeights;
    static constexpr std::string_view called = "weights";
    BOUND_KEY(bytes, is::positive, required);
    BOUND_KEY(per_token, is::positive, required);
    BOUND_KEY(computes_in, is::name);
    BOUND_KEY(experts_compute_in, is::name);
    BOUND_KEY(computed, is::boolean);
} weights{};

inline constexpr struct ModelKeys : FactsKeys<ModelSpec> {
    using T = ModelSpec;
    static constexpr std::string_view called = "model";
    Key model = row<&T::name>("model", is::text, required);
    BOUND_KEY(parameters_active, is::positive, required);
    BOUND_KEY(tied_embeddings, is::boolean);
    BOUND_KEY(layers, is::integer_from<0>, required);
    BOUND_KEY(attention_layers, is::integer_from<0>);
    BOUND_KEY(hidden_size, is::integer_from<0>, required);
    BOUND_KEY(attention_heads, is::integer_from<0>, required);
    BOUND_KEY(kv_heads, is::integer_from<0>, required);
    BOUND_KEY(head_dim, is::integer_from<0>, required);
    BOUND_KEY(vocabulary, is::integer_from<0>, required);
    BOUND_KEY(context_tokens, is::integer_from<1>, required);
    BOUND_KEY(experts, is::integer_from<0>);
    BOUND_KEY(experts_per_token, is::integer_from<0>);
    BOUND_KEY(expert_parameters, is::number_from<0>);
    BOUND_KEY(dense_layers, is::integer_from<0>);
    BOUND_KEY(kv_bytes_per_token_16bit, is::positive);
    BOUND_KEY(sliding_kv_bytes_per_token_16bit, is::number_from<0>);
    BOUND_KEY(fixed_bytes_per_token, is::number_from<0>);
    BOUND_KEY(latent_width, is::integer_from<0>);
    BOUND_KEY(state_bytes_per_sequence, is::number_from<0>);
    BOUND_KEY(sliding_window, is::integer_from<0>);
    BOUND_KEY(sliding_layers, is::integer_from<0>);
    BOUND_KEY(weights, is::some<is::mapping_of<is::keyed<keys::weights>>>, required);
} model{};

inline constexpr struct LayerChoiceKeys {
    using T = LayerChoice;
    static constexpr std::string_view called = "layer_choice";
    BOUND_KEY(use, is::name, required);
    BOUND_KEY(when, is::expression, required);
} layer_choice{};

inline constexpr struct LayerBlockKeys {
    using T = LayerBlock;
    static constexpr std::string_view called = "layer_block";
    BOUND_KEY(facts, is::mapping_of<is::text>);
    BOUND_KEY(linear, is::mapping_of<is::text>);
    BOUND_KEY(experts, is::mapping_of<is::text>);
    BOUND_KEY(other, is::mapping_of<is::text>);
} layer_block{};

inline constexpr struct WeightFormatKeys {
    using T = WeightFormat;
    static constexpr std::string_view called = "weight_format";
    BOUND_KEY(bits, is::positive, required);
    BOUND_KEY(experts_only, is::boolean);
} weight_format{};

inline constexpr struct ModelFamilyKeys {
    using T = ModelFamily;
    static constexpr std::string_view called = "model_family";
    BOUND_KEY(types, is::list_of<is::text>);
    BOUND_KEY(like, is::text);
    BOUND_KEY(names, is::mapping_of<is::text>);
    BOUND_KEY(assumed, is::mapping_of<is::text>);
    BOUND_KEY(mixer, is::list_of<is::keyed<keys::layer_choice>>);
    BOUND_KEY(feed_forward, is::list_of<is::keyed<keys::layer_choice>>);
    BOUND_KEY(contradictions, is::list_of<is::expression>);
} model_family{};

inline constexpr struct ModelFamiliesKeys {
    using T = ModelFamilies;
    static constexpr std::string_view called = "model_families";
    BOUND_KEY(usual, is::keyed<keys::model_family>, required);
    BOUND_KEY(blocks, is::mapping_of<is::keyed<keys::layer_block>>, required);
    BOUND_KEY(quantizations, is::mapping_of<is::keyed<keys::weight_format>>, required);
    BOUND_KEY(families, is::list_of<is::keyed<keys::model_family>>, required);
} model_families{};

inline constexpr struct AttentionKeys : ArchitecturesKeys<&AttentionTraits::architectures> {
    using T = AttentionTraits;
    static constexpr std::string_view called = "attention";
    BOUND_KEY(prefill_efficiency, is::efficiency, required);
    BOUND_KEY(decode_efficiency, is::efficiency, required);
    BOUND_KEY(cache_types, is::list_of<is::text>);
} attention{};

inline constexpr struct DefaultRuleKeys {
    using T = DefaultRule;
    static constexpr std::string_view called = "default_rule";
    BOUND_KEY(value, is::value, required);
    BOUND_KEY(from_memory_bytes, is::number_from<0>);
    BOUND_KEY(hardware, is::list_of<is::text>);
    BOUND_KEY(when, is::conditions);
} default_rule{};

inline constexpr struct CostCheckKeys : SinceKeys<&CostCheck::since>, UntilKeys<&CostCheck::until> {
    using T = CostCheck;
    static constexpr std::string_view called = "cost_check";
    BOUND_KEY(hardware, is::name);
    BOUND_KEY(models, is::one_of<checked_families>);
    BOUND_KEY(rows, is::integer_from<1>, required);
    BOUND_KEY(of, is::text, required);
    BOUND_KEY(output_tokens_per_second, is::some<is::list_of<is::positive>>, required);
    BOUND_KEY(time_per_output_token, is::some<is::list_of<is::positive>>);
    BOUND_KEY(time_to_first_token, is::some<is::list_of<is::positive>>);
    BOUND_KEY(within, is::positive);
} cost_check{};

/// What an engine's version changes. The file must have the first five and may leave out the rest;
/// below `before` each may be left out.
struct VersionTraitsKeys {
    using T = EngineTraits;
    BOUND_KEY(compute_efficiency, is::mapping_of<is::efficiency>);
    BOUND_KEY(bandwidth_efficiency, is::efficiency);
    BOUND_KEY(step_overhead_seconds, is::number_from<0>);
    BOUND_KEY(sequence_overhead_seconds, is::number_from<0>);
    BOUND_KEY(request_overhead_seconds, is::number_from<0>);
    BOUND_KEY(request_latency_seconds, is::number_from<0>);
    BOUND_KEY(layer_seconds, is::number_from<0>);
    BOUND_KEY(layer_bytes_per_token_and_width, is::number_from<0>);
    BOUND_KEY(kernel_call_share, is::number_from<0>);
    BOUND_KEY(kernel_seconds, is::number_from<0>);
    BOUND_KEY(defaults, is::mapping_of<is::list_of<is::keyed<keys::default_rule>>>);
};

inline constexpr struct EarlierTraitsKeys : VersionTraitsKeys {
    static constexpr std::string_view called = "earlier_traits";
} earlier_traits{};

inline constexpr struct TraitsKeys : VersionTraitsKeys {
    using T = EngineTraits;
    static constexpr std::string_view called = "traits";
    BOUND_KEY(engine, is::text, required);
    WORD_KEY(fraction_of, memory_fractions, required);
    BOUND_KEY(eager_layer_seconds, is::number_from<0>, required);
    BOUND_KEY(eager_expert_layer_seconds, is::number_from<0>);
    BOUND_KEY(prompts_in_graphs, is::boolean);
    BOUND_KEY(replicas_share_experts, is::boolean);
    BOUND_KEY(chunk_overhead_seconds, is::number_from<0>, required);
    BOUND_KEY(attention, is::some<is::mapping_of<is::keyed<keys::attention>>>, required);
    BOUND_KEY(context_bytes, is::number_from<0>, required);
    BOUND_KEY(activation_bytes_per_token_and_width, is::number_from<0>, required);
    BOUND_KEY(logits_bytes_per_entry, is::number_from<0>, required);
    BOUND_KEY(graph_bytes, is::number_from<0>);
    BOUND_KEY(graph_bytes_per_size, is::number_from<0>);
    BOUND_KEY(checks_context, is::boolean);
    BOUND_KEY(start_seconds, is::number_from<0>, required);
    BOUND_KEY(load_bytes_per_second, is::positive, required);
    BOUND_KEY(compile_seconds, is::number_from<0>);
    BOUND_KEY(graph_seconds_per_size, is::number_from<0>);
    BOUND_KEY(whole_prompts_raise_budget, is::boolean);
    BOUND_KEY(reserved_share, is::number_from<0>);
    BOUND_KEY(state_share, is::number_from<0>);
    BOUND_KEY(checked, is::list_of<is::keyed<keys::cost_check>>);
    FREE_KEY(before, is::mapping_of<is::keyed<keys::earlier_traits>>);
    BOUND_KEY(log, is::mapping_of<is::list_of<is::text>>);
    FREE_KEY(sources, is::mapping_of<is::text>, required);
} traits{};

inline constexpr struct KernelsKeys {
    static constexpr std::string_view called = "kernels";
    FREE_KEY(engine, is::text, required);
    FREE_KEY(source, is::text, required);
    FREE_KEY(licence, is::text, required);
    FREE_KEY(kernels,
             is::mapping_of<is::mapping_of<is::mapping_of<is::list_of<is::number_from<0>>>>>,
             required);
} kernels{};

inline constexpr struct RecipeKeys : EnvironmentKeys<&Recipe::command, &Command::environment>,
                                     SinceKeys<&Recipe::since>,
                                     UntilKeys<&Recipe::until> {
    using T = Recipe;
    static constexpr std::string_view called = "recipe";
    BOUND_KEY(models, is::some<is::list_of<is::text>>, required);
    BOUND_KEY(alike, is::list_of<is::text>);
    BOUND_KEY(quantization, is::word);
    BOUND_KEY(checkpoint, is::name);
    BOUND_KEY(hardware, is::list_of<is::name>, required);
    BOUND_KEY(goal, is::one_of<recipe_goals>);
    BOUND_KEY(source, is::text, required);
    FREE_KEY(flags, is::text);
    FREE_KEY(settings, is::mapping_of<is::value>);
    BOUND_KEY(measured, is::text);
    BOUND_KEY(licence, is::text, required);
} recipe{};

inline constexpr struct RecipesKeys {
    static constexpr std::string_view called = "recipes";
    FREE_KEY(engine, is::text, required);
    FREE_KEY(recipes, is::list_of<is::keyed<keys::recipe>>, required);
} recipes{};

}  // namespace servetune::keys
