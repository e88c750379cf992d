// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of files with facts: hardware, models, traits of engines. Tables as in keys.hpp.

#include "keys.hpp"

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
    BOUND_KEY(kv_bytes_per_token_16bit, is::positive);
    BOUND_KEY(sliding_window, is::integer_from<0>);
    BOUND_KEY(sliding_layers, is::integer_from<0>);
    BOUND_KEY(weights, is::some<is::mapping_of<is::keyed<keys::weights>>>, required);
} model{};

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

inline constexpr struct CostCheckKeys {
    using T = CostCheck;
    static constexpr std::string_view called = "cost_check";
    BOUND_KEY(hardware, is::name, required);
    BOUND_KEY(rows, is::integer_from<1>, required);
    BOUND_KEY(median_error, is::number_from<0>, required);
    BOUND_KEY(error_90, is::number_from<0>, required);
    BOUND_KEY(of, is::text, required);
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
    BOUND_KEY(layer_seconds, is::number_from<0>);
    BOUND_KEY(layer_bytes_per_token_and_width, is::number_from<0>);
    BOUND_KEY(kernel_call_share, is::number_from<0>);
    BOUND_KEY(kernel_seconds, is::number_from<0>);
    BOUND_KEY(defaults, is::mapping_of<is::list_of<is::keyed<keys::default_rule>>>);
    BOUND_KEY(checked, is::list_of<is::keyed<keys::cost_check>>);
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
    FREE_KEY(before, is::mapping_of<is::keyed<keys::earlier_traits>>);
    BOUND_KEY(log, is::mapping_of<is::list_of<is::text>>);
    FREE_KEY(sources, is::mapping_of<is::text>, required);
} traits{};

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
