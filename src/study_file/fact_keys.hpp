// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of files with facts: hardware, models, traits of engines. Tables as in keys.hpp.

#include "shared_keys.hpp"

namespace servetune::keys {

inline constexpr struct HardwareKeys : FactsKeys<HardwareSpec> {
    using T = HardwareSpec;
    static constexpr std::string_view called = "hardware";
    Key hardware = row<&T::name>("hardware", is::text, "its name, and its file's", required);
    Key architecture = row<&T::architecture>("architecture", is::one_of<architectures>,
                                             "what decides which kernels it runs", required);
    Key memory_bytes =
        row<&T::memory_bytes>("memory_bytes", is::positive, "as its driver reports them", required);
    Key memory_bandwidth_bytes_per_second = row<&T::memory_bandwidth_bytes_per_second>(
        "memory_bandwidth_bytes_per_second", is::positive, "the vendor's peak", required);
    Key flops_per_second = row<&T::flops_per_second>(
        "flops_per_second", is::mapping_of<is::positive>,
        "number type (fp16 bf16 fp8 int8 fp4) -> dense matrix operations, the vendor's peak",
        required);
    Key shared_memory = row<&T::shared_memory>("shared_memory", is::boolean,
                                               "the CPU uses the same memory (false)");
    Key link_bytes_per_second = row<&T::link_bytes_per_second>(
        "link_bytes_per_second", is::positive, "to its neighbours, both directions together");
    Key devices_per_node = row<&T::devices_per_node>("devices_per_node", is::integer_from<1>,
                                                     "that this link joins (as many as there are)");
    Key network_bytes_per_second = row<&T::network_bytes_per_second>(
        "network_bytes_per_second", is::positive, "of one device to another node, one direction");
    Key unverified = row<&T::unverified>(
        "unverified", is::list_of<is::text>,
        "keys of figures seen in no data sheet, also flops_per_second.fp8; `validate` names them");
} hardware{};

inline constexpr struct WeightsKeys {
    using T = ModelWeights;
    static constexpr std::string_view called = "weights";
    Key bytes = row<&T::bytes>("bytes", is::positive, "the checkpoint", required);
    Key per_token = row<&T::per_token>(
        "per_token", is::positive, "what one decoded token of one stream reads of it", required);
} weights{};

inline constexpr struct ModelKeys : FactsKeys<ModelSpec> {
    using T = ModelSpec;
    static constexpr std::string_view called = "model";
    Key model = row<&T::name>("model", is::text, "its name on a hub", required);
    Key parameters_active =
        row<&T::parameters_active>("parameters_active", is::positive,
                                   "that work for one token, both embeddings included", required);
    Key tied_embeddings = row<&T::tied_embeddings>(
        "tied_embeddings", is::boolean, "the output head is the input embedding (false)");
    Key layers = row<&T::layers>("layers", is::integer_from<0>, "of the language model", required);
    Key attention_layers = row<&T::attention_layers>(
        "attention_layers", is::integer_from<0>, "those whose cache grows with the context (all)");
    Key hidden_size = row<&T::hidden_size>("hidden_size", is::integer_from<0>, "width", required);
    Key attention_heads = row<&T::attention_heads>("attention_heads", is::integer_from<0>,
                                                   "of the queries", required);
    Key kv_heads =
        row<&T::kv_heads>("kv_heads", is::integer_from<0>, "of keys and values", required);
    Key head_dim =
        row<&T::head_dim>("head_dim", is::integer_from<0>, "width of one head", required);
    Key vocabulary = row<&T::vocabulary>("vocabulary", is::integer_from<0>, "tokens", required);
    Key context_tokens =
        row<&T::context_tokens>("context_tokens", is::integer_from<1>,
                                "the longest prompt and answer it was made for", required);
    Key experts = row<&T::experts>("experts", is::integer_from<0>, "per layer; 0: dense (0)");
    Key experts_per_token = row<&T::experts_per_token>("experts_per_token", is::integer_from<0>,
                                                       "routed; 0: dense (0)");
    Key kv_bytes_per_token_16bit = row<&T::kv_bytes_per_token_16bit>(
        "kv_bytes_per_token_16bit", is::positive,
        "cache of one token in all layers, at 16 bits (keys and values of all heads)");
    Key sliding_window = row<&T::sliding_window>(
        "sliding_window", is::integer_from<0>, "tokens that sliding layers look back; 0: none (0)");
    Key sliding_layers =
        row<&T::sliding_layers>("sliding_layers", is::integer_from<0>,
                                "of the attention layers, those with the window (0)");
    Key weights = row<&T::weights>(
        "weights", is::some<is::mapping_of<is::keyed<keys::weights>>>,
        "quantization -> checkpoint; the first is the one that is published", required);
} model{};

inline constexpr struct AttentionKeys : ArchitecturesKeys<&AttentionTraits::architectures> {
    using T = AttentionTraits;
    static constexpr std::string_view called = "attention";
    Key prefill_efficiency = row<&T::prefill_efficiency>(
        "prefill_efficiency", is::efficiency, "share of the peak FLOP/s of bf16", required);
    Key decode_efficiency =
        row<&T::decode_efficiency>("decode_efficiency", is::efficiency,
                                   "share of the memory bandwidth, reading the cache", required);
    Key cache_types = row<&T::cache_types>("cache_types", is::list_of<is::text>,
                                           "of keys and values that it has kernels for (all)");
} attention{};

inline constexpr struct DefaultRuleKeys {
    using T = DefaultRule;
    static constexpr std::string_view called = "default_rule";
    Key value = row<&T::value>("value", is::value, "what the engine uses", required);
    Key from_memory_bytes = row<&T::from_memory_bytes>("from_memory_bytes", is::number_from<0>,
                                                       "on devices with at least so much (0)");
    Key hardware = row<&T::hardware>("hardware", is::list_of<is::text>, "on these only");
    Key when =
        row<&T::when>("when", is::conditions,
                      "and only where the command sets these parameters to one of these values");
} default_rule{};

inline constexpr struct CostCheckKeys {
    using T = CostCheck;
    static constexpr std::string_view called = "cost_check";
    Key hardware = row<&T::hardware>("hardware", is::name,
                                     "the chip that the rows were measured on", required);
    Key rows = row<&T::rows>("rows", is::integer_from<1>, "measured rows", required);
    Key median_error = row<&T::median_error>(
        "median_error", is::number_from<0>,
        "of predicted / measured - 1, in rows that its fit left out", required);
    Key error_90 = row<&T::error_90>("error_90", is::number_from<0>,
                                     "nine of ten errors are within it", required);
    Key of = row<&T::of>("of", is::text, "engine versions and models of the rows", required);
} cost_check{};

/// What an engine's version changes. The file must have the first five and may leave out the rest;
/// below `before` each may be left out.
struct VersionTraitsKeys {
    using T = EngineTraits;
    Key compute_efficiency = row<&T::compute_efficiency>(
        "compute_efficiency", is::mapping_of<is::efficiency>,
        "number type (bf16 fp8 ... other) -> share of the peak FLOP/s in products with weights");
    Key bandwidth_efficiency =
        row<&T::bandwidth_efficiency>("bandwidth_efficiency", is::efficiency,
                                      "share of the memory bandwidth while weights are read");
    Key step_overhead_seconds = row<&T::step_overhead_seconds>(
        "step_overhead_seconds", is::number_from<0>, "the host's work for a step");
    Key sequence_overhead_seconds =
        row<&T::sequence_overhead_seconds>("sequence_overhead_seconds", is::number_from<0>,
                                           "the host's work for each sequence of a step");
    Key request_overhead_seconds =
        row<&T::request_overhead_seconds>("request_overhead_seconds", is::number_from<0>,
                                          "front end, per request: parsing, template, tokenizer");
    Key layer_seconds =
        row<&T::layer_seconds>("layer_seconds", is::number_from<0>,
                               "the device's time for each layer of a step, whatever its size (0)");
    Key defaults =
        row<&T::defaults>("defaults", is::mapping_of<is::list_of<is::keyed<keys::default_rule>>>,
                          "parameter -> what it comes to by device; the first that fits counts");
    Key checked = row<&T::checked>("checked", is::list_of<is::keyed<keys::cost_check>>,
                                   "how far predictions were from what was measured, by chip");
};

inline constexpr struct EarlierTraitsKeys : VersionTraitsKeys {
    static constexpr std::string_view called = "earlier_traits";
} earlier_traits{};

inline constexpr struct DefectKeys {
    using T = Defect;
    static constexpr std::string_view called = "defect";
    Key because = row<&T::because>("because", is::text, "why; shown when it happens", required);
    Key kind = row<&T::kind>("kind", is::one_of<defect_kinds>, "what happens", required);
    Key when = row<&T::when>("when", is::expression,
                             "an expression over the engine's own parameters", required);
    Key seconds =
        row<&T::seconds>("seconds", is::number_from<0>,
                         "slow_start: longer; else: into the start or the load", required);
    Key lines = row<&T::lines>("lines", is::list_of<is::text>, "of the log");
} defect{};

inline constexpr struct TraitsKeys : VersionTraitsKeys {
    using T = EngineTraits;
    static constexpr std::string_view called = "traits";
    Key engine = row<&T::engine>("engine", is::text,
                                 "the engine whose speed and memory this describes", required);
    Key fraction_of = word_row<memory_fractions, &T::fraction_of>(
        "fraction_of", "what its memory fraction is a share of", required);
    Key eager_layer_seconds = row<&T::eager_layer_seconds>(
        "eager_layer_seconds", is::number_from<0>, "launching one layer without a graph", required);
    Key chunk_overhead_seconds = row<&T::chunk_overhead_seconds>(
        "chunk_overhead_seconds", is::number_from<0>, "front end, per streamed event", required);
    Key attention =
        row<&T::attention>("attention", is::some<is::mapping_of<is::keyed<keys::attention>>>,
                           "back end -> what it reaches; the first is the default", required);
    Key context_bytes = row<&T::context_bytes>("context_bytes", is::number_from<0>,
                                               "CUDA context, libraries, workspaces", required);
    Key activation_bytes_per_token_and_width = row<&T::activation_bytes_per_token_and_width>(
        "activation_bytes_per_token_and_width", is::number_from<0>,
        "times tokens of a step, times hidden size", required);
    Key logits_bytes_per_entry =
        row<&T::logits_bytes_per_entry>("logits_bytes_per_entry", is::number_from<0>,
                                        "times sequences of a step, times vocabulary", required);
    Key graph_bytes =
        row<&T::graph_bytes>("graph_bytes", is::number_from<0>, "recording graphs at all (0)");
    Key graph_bytes_per_size = row<&T::graph_bytes_per_size>(
        "graph_bytes_per_size", is::number_from<0>, "and for each size (0)");
    Key checks_context = row<&T::checks_context>(
        "checks_context", is::boolean,
        "refuses to start when one request of the longest context does not fit the cache (false)");
    Key start_seconds = row<&T::start_seconds>("start_seconds", is::number_from<0>,
                                               "imports and processes", required);
    Key load_bytes_per_second = row<&T::load_bytes_per_second>(
        "load_bytes_per_second", is::positive, "weights from disk to device", required);
    Key compile_seconds =
        row<&T::compile_seconds>("compile_seconds", is::number_from<0>, "once (0)");
    Key graph_seconds_per_size = row<&T::graph_seconds_per_size>(
        "graph_seconds_per_size", is::number_from<0>, "recording (0)");
    Key whole_prompts_raise_budget = row<&T::whole_prompts_raise_budget>(
        "whole_prompts_raise_budget", is::boolean,
        "without chunked prefill a step holds the longest context (false)");
    Key reserved_share = row<&T::reserved_share>(
        "reserved_share", is::number_from<0>,
        "of the tokens still to come, kept free at admission, by itself (0)");
    Key before{"before", is::mapping_of<is::keyed<keys::earlier_traits>>,
               "engine version -> what was different before it; the newest first"};
    Key log = row<&T::log>("log", is::mapping_of<is::list_of<is::text>>,
                           "event -> lines as the engine prints them, with {figures}");
    Key defects =
        row<&T::defects>("defects", is::list_of<is::keyed<keys::defect>>,
                         "what goes wrong with certain flags though every rule allows them");
    Key sources{"sources", is::mapping_of<is::text>,
                "key -> where its figure is from; every figure has one", required};
} traits{};

inline constexpr struct RecipeKeys : EnvironmentKeys<&Recipe::command, &Command::environment>,
                                     SinceKeys<&Recipe::since>,
                                     UntilKeys<&Recipe::until> {
    using T = Recipe;
    static constexpr std::string_view called = "recipe";
    Key models = row<&T::models>("models", is::some<is::list_of<is::text>>,
                                 "what it was published for, without a quantization: Qwen/Qwen3-8B",
                                 required);
    Key alike =
        row<&T::alike>("alike", is::list_of<is::text>, "others of the same family and size class");
    Key quantization =
        row<&T::quantization>("quantization", is::word,
                              "of the checkpoint: fp8, fp4, awq (the one in the models' own name)");
    Key checkpoints = row<&T::checkpoints>("checkpoints", is::list_of<is::text>,
                                           "quantized ones that its source served");
    Key hardware = row<&T::hardware>("hardware", is::list_of<is::name>,
                                     "the chips that it was published for", required);
    Key goal = row<&T::goal>("goal", is::one_of<recipe_goals>, "what its source made it for");
    Key source = row<&T::source>("source", is::text, "where it was published", required);
    Key flags{"flags", is::text, "as in a command, in any spelling, without the model"};
    Key settings{"settings", is::mapping_of<is::value>,
                 "dotted path in the engine's options file -> value"};
    Key measured = row<&T::measured>("measured", is::text, "the gain that the source measured");
    Key licence = row<&T::licence>("licence", is::text, "of the source", required);
} recipe{};

inline constexpr struct RecipesKeys {
    static constexpr std::string_view called = "recipes";
    Key engine{"engine", is::text, "the engine that is started, and the file's name", required};
    Key recipes{"recipes", is::list_of<is::keyed<keys::recipe>>,
                "published deployments; of equals the first is taken", required};
} recipes{};

}  // namespace servetune::keys
