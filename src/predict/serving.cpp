// SPDX-License-Identifier: Apache-2.0
// From the words of a command to the few figures of the cost model: parameters by their concepts,
// defaults by device and model.
#include "servetune/detail/predict/serving.hpp"

#include "base/nearest.hpp"
#include "by_concept.hpp"
#include "engine/command_reader.hpp"
#include "engine/launcher.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace servetune {
namespace {

/// What an engine takes beside what is searched, as part of the parameter.
void with_further_values(EngineParameter& declared) {
    if (!declared.also) return;
    Domain& domain = declared.parameter.domain;
    if (const auto* more = std::get_if<IntegerDomain>(&declared.also->domain)) {
        domain = *more;
        return;
    }
    auto* range = std::get_if<IntegerDomain>(&domain);
    for (const Value& value : std::get<ChoiceDomain>(declared.also->domain).values)
        if (const auto* number = std::get_if<std::int64_t>(&value);
            number != nullptr && range != nullptr) {
            range->low = std::min(range->low, *number);
            range->scale = Scale::linear;
        } else if (auto* choice = std::get_if<ChoiceDomain>(&domain))
            choice->values.push_back(value);
}

/// A search may only look at powers of two; a person may write any number. Counts, that is; of
/// sizes in bytes the powers stay.
Engine widened(Engine engine) {
    constexpr std::int64_t largest_count = 1 << 24;
    for (EngineParameter& declared : engine.parameters) {
        with_further_values(declared);
        if (auto* range = std::get_if<IntegerDomain>(&declared.parameter.domain);
            range != nullptr && range->high <= largest_count) {
            range->scale = Scale::linear;
            range->step = 1;
        } else if (auto* share = std::get_if<RealDomain>(&declared.parameter.domain);
                   share != nullptr && share->high <= 1) {
            share->low = std::min(share->low, 0.01);
            share->high = 1;
            share->scale = Scale::linear;
        }
    }
    return engine;
}

/// No more levels than a search space may have: it is here for the rules, which say nothing of
/// larger counts.
std::vector<Parameter> bounded(std::vector<Parameter> parameters) {
    constexpr std::int64_t most_levels = (1 << 20) - 1;
    for (Parameter& parameter : parameters)
        if (auto* range = std::get_if<IntegerDomain>(&parameter.domain);
            range != nullptr && range->scale == Scale::linear)
            range->high = std::min(range->high, range->low + most_levels - 1);
    return parameters;
}

/// Names and paths are free text, of which a search space has none.
bool is_text(const EngineParameter& declared) {
    return std::holds_alternative<TextDomain>(declared.parameter.domain);
}

std::string no_model_text(const Engine& engine) {
    const auto at = std::find(engine.launch.begin(), engine.launch.end(), "{model}");
    if (at != engine.launch.begin() && (at - 1)->starts_with('-'))
        return *(at - 1) + " is missing: no model is named";
    const std::vector<std::string> launcher = launcher_words(engine);
    return "the model's name is wanted behind '" +
           (launcher.empty() ? engine.name : launcher.back()) + "'";
}

/// Rules about names and paths: a search space has none of these, so they are looked at apart.
bool speaks_of_texts(const Engine& engine, const Constraint& constraint) {
    const std::vector<std::string> names = names_of(constraint);
    return any_of(names, [&](const std::string& name) {
        const EngineParameter* declared = engine.find(name);
        return declared != nullptr && is_text(*declared);
    });
}

/// Rules about the model's shape: the space does not know the model, so they are looked at apart
/// too.
bool speaks_of_the_model(const Require& rule) {
    const std::vector<std::string>& names = rule.expression.names();
    return any_of(names, [](const std::string& name) { return name.starts_with("model."); });
}

SpaceDescription described(const Engine& engine, const std::string& version) {
    SpaceDescription description{{engine}};
    std::erase_if(description.engines.front().constraints,
                  [&](const Constraint& rule) { return speaks_of_texts(engine, rule); });
    if (!version.empty()) description.versions[engine.name] = version;
    return description;
}

/// Bits that one key or value takes in a type of cache, its scales included; nothing where the type
/// is not known.
std::optional<double> bits_of(const std::string& type) {
    constexpr std::array<std::pair<std::string_view, double>, 19> known{
        {{"bf16", 16},
         {"f16", 16},
         {"f32", 32},
         {"fp8_e4m3", 8},
         {"fp8_e5m2", 8},
         {"fp8_per_token_head", 8.25},  // a 32-bit scale per 128
         {"int8_per_token_head", 8.25},
         {"int4_per_token_head", 4.25},
         {"nvfp4", 4.5},  // an 8-bit scale per 16
         {"nvfp4_4over6", 4.5},
         {"fp4_e2m1", 4.5},
         {"fp4_mx_block16", 4.5},
         {"mxfp8", 8.25},  // an 8-bit scale per 32
         {"q8_0", 8.5},    // a 16-bit scale per 32
         {"q5_1", 6},
         {"q5_0", 5.5},
         {"q4_1", 5},
         {"q4_0", 4.5},
         {"iq4_nl", 4.5}}};
    for (const auto& [name, bits] : known)
        if (name == type) return bits;
    return std::nullopt;
}

StartResult refuses(const EngineTraits& traits, const char* event,
                    const std::vector<std::pair<std::string, std::string>>& values,
                    std::string cause) {
    return {false, traits.start_seconds, std::move(cause), log_lines(traits, event, values)};
}

/// Weights of 16 bits that are held and computed in 32: twice the bytes, in memory and in each
/// step.
void widen_to_fp32(Serving& serving) {
    auto& weights = serving.target.model.weights;
    const auto* native = entry_in(weights, serving.settings.quantization);
    if (native == nullptr || (native->computes_in != "bf16" && native->computes_in != "fp16"))
        return;
    const ModelWeights narrow = *native;
    weights["fp32"] = {2 * narrow.bytes, 2 * narrow.per_token, "fp32"};
    serving.settings.quantization = "fp32";
}

/// Which weights are served: those of the checkpoint, or what a flag makes of them.
void read_quantization(Serving& serving, ByConcept& by, const ServedModel& checkpoint) {
    ServingSettings& settings = serving.settings;
    settings.quantization = checkpoint.quantization;
    const std::string flag = by.text("quantization");
    const std::string dtype = by.text("weight_dtype");
    const bool plain = checkpoint.quantization == checkpoint.model.native_type;
    if (flag.empty() || flag == "none") {
        if (plain && (dtype == "float32" || dtype == "float")) widen_to_fp32(serving);
        return;
    }
    if (!checkpoint.model.weights.contains(checkpoint.quantization))
        return;  // its bytes are not known: the cost model says so
    const std::string stem = flag.substr(0, flag.find_first_of("_-"));
    const bool same = checkpoint.quantization.starts_with(stem) ||
                      (by.meaning("quantization") == "as_checkpoint" && !plain);
    if (same) return;
    if (plain && stem == "fp8" && checkpoint.model.weights.contains("fp8")) {  // made while loading
        settings.quantization = "fp8";
        return;
    }
    serving.refused = refuses(serving.target.traits, "quantization_mismatch",
                              {{"flag", flag}, {"checkpoint", checkpoint.quantization}},
                              "the checkpoint is " + checkpoint.quantization + ", not " + flag);
}

void read_cache(Serving& serving, ByConcept& by) {
    ServingSettings& settings = serving.settings;
    const std::string one = by.meaning("kv_cache_dtype");
    const std::string key = by.meaning("key_cache_dtype");
    const std::string value = by.meaning("value_cache_dtype");
    settings.cache_type = !one.empty() ? one : !value.empty() ? value : "bf16";
    const auto bits = [&](const std::string& type) {
        const auto known = bits_of(type);
        if (!known)
            serving.refused = refuses(serving.target.traits, "unsupported_attention",
                                      {{"cache_type", type}, {"backend", "attention"}},
                                      "a cache of " + type + " is not for this model and chip");
        return known.value_or(16);
    };
    settings.cache_bits =
        key.empty() && value.empty()
            ? bits(settings.cache_type)
            : (bits(key.empty() ? "bf16" : key) + bits(value.empty() ? "bf16" : value)) / 2;
    const std::string said = by.text("kv_cache_dtype");
    if (settings.quantization == "fp32" && key.empty() && value.empty() &&
        (said.empty() || said == "auto"))
        settings.cache_bits = 32;
    settings.memory_fraction = by.number("memory_fraction").value_or(0.9);
    if (const auto bytes = by.number("kv_cache_bytes")) settings.cache_bytes = bytes;
    if (const auto tokens = by.whole("cached_tokens")) settings.cache_tokens = tokens;
    if (const auto tokens = by.whole("total_context_tokens")) settings.cache_tokens = tokens;
    if (serving.target.traits.fraction_of == EngineTraits::FractionOf::none &&
        !settings.cache_tokens)
        settings.cache_tokens = serving.target.model.context_tokens;
    settings.block_tokens = by.integer("block_size", 16);
    settings.prefix_cache = by.flag("prefix_cache", true) && !by.flag("no_prefix_cache", false);
}

void read_scheduling(ServingSettings& settings, ByConcept& by, const EngineTraits& traits,
                     const ModelSpec& model) {
    settings.max_sequences = by.integer("max_concurrent_sequences", settings.max_sequences);
    settings.max_batched_tokens = by.integer("max_batched_tokens", settings.max_batched_tokens);
    settings.micro_batch_tokens = by.integer("micro_batch_tokens", 0);
    settings.max_context_tokens = by.integer("max_context_tokens", model.context_tokens);
    settings.chunked_prefill = by.flag("chunked_prefill", true);
    if (!settings.chunked_prefill && traits.whole_prompts_raise_budget &&
        !by.said("max_batched_tokens"))
        settings.max_batched_tokens =
            std::max(settings.max_batched_tokens, settings.max_context_tokens);
    if (const auto chunk = by.whole(
            // SGLang: prompts are cut to this, a step of prompts holds no more
            "chunked_prefill_tokens")) {
        settings.chunked_prefill = *chunk > 0;
        if (*chunk > 0) settings.max_batched_tokens = *chunk;
    }
    settings.mixed_steps = by.flag("mixed_chunk", true);
    settings.overlap = by.flag("overlap_scheduling", by.declares("no_overlap_scheduling")) &&
                       !by.flag("no_overlap_scheduling", false);
    settings.reserved_share =
        traits.reserved_share * by.number("schedule_conservativeness").value_or(1);
    if (by.meaning("capacity_policy") == "evicts") settings.reserved_share = 0;
    settings.reserved_share = std::min(settings.reserved_share, 1.0);
    settings.stream_interval = by.integer("stream_interval", 1);
    settings.front_ends = by.integer("api_servers", 1);
    if (by.meaning("performance_mode") == "double_batches") {
        if (!by.said("max_concurrent_sequences")) settings.max_sequences *= 2;
        if (!by.said("max_batched_tokens")) settings.max_batched_tokens *= 2;
    }
}

/// Where nobody named a back end and the usual one has no kernels for this cache, engines take
/// another: here the one that reads the cache fastest. (vLLM: platforms/cuda.py asks its back ends
/// in turn. SGLang: server_args.py goes from fa3 to triton for fp8_e5m2.) Empty where the usual one
/// will do, or none does.
std::string that_takes(const std::string& cache_type, const std::string& usual,
                       const ServingTarget& target) {
    const auto takes = [&](const AttentionTraits& attention) {
        return attention.takes(cache_type, target.hardware.architecture);
    };
    const auto& known = target.traits.attention;
    if (const auto* found = entry_in(known, usual); found == nullptr || takes(*found)) return "";
    std::string best;
    for (const auto& [name, attention] : known)
        if (takes(attention) && (best.empty() || attention.decode_efficiency >
                                                     known.find(best)->second.decode_efficiency))
            best = name;
    return best;
}

void read_kernels(Serving& serving, ByConcept& by) {
    ServingSettings& settings = serving.settings;
    const EngineTraits& traits = serving.target.traits;
    const std::string backend = by.meaning("attention_backend");
    settings.attention_backend =
        backend.empty() || backend == "engine" ? traits.default_attention : backend;
    if (!by.said("attention_backend"))
        if (const std::string other =
                that_takes(settings.cache_type, settings.attention_backend, serving.target);
            !other.empty()) {
            settings.attention_backend = other;
            by.settle("attention_backend", other);
        }
    if (!traits.attention.contains(settings.attention_backend))
        serving.refused =
            refuses(traits, "unsupported_attention",
                    {{"backend", backend}, {"cache_type", settings.cache_type}},
                    "the attention back end " + backend + " is not for this model and chip");
    const bool takes_none =
        traits.graph_bytes + traits.graph_bytes_per_size + traits.graph_seconds_per_size <= 0;
    const bool none =
        by.flag("no_cuda_graph", takes_none) || by.meaning("cuda_graph_mode") == "none";
    const std::int64_t most = std::min<std::int64_t>(512, 2 * settings.max_sequences);
    settings.graph_max_tokens = none ? 0 : by.integer("cuda_graph_max_batch", most);
    const auto level = by.number("compile_level").value_or(1);
    const auto compile_mode = by.number("compile_mode").value_or(1);
    const bool by_itself = by.declares("compile_mode");
    settings.compiled = by.flag("torch_compile", by_itself) && level > 0 && compile_mode > 0 &&
                        !(none && by_itself);
    // Engines that compile by themselves are tuned for it. Assumed: fused element-wise kernels gain
    // a few percent (none found in public figures).
    serving.target.traits.uncompiled_factor = by_itself ? 1.05 : 1;
    // Without it they launch each small kernel from Python. Steps of 28 layers took 22 ms (vLLM
    // 0.29, A800: vllm-omni issue 7960) and 20.1 ms (vLLM 0.19, A100: SLO-Guard): 7.5e-4 s a layer.
    constexpr double uncompiled_launches = 1.3;  ///< of eager_layer_seconds, 5.7e-4 s
    if (by_itself && !settings.compiled)
        serving.target.traits.eager_layer_seconds *= uncompiled_launches;
}

void read_parallel(ServingSettings& settings, ByConcept& by, const ServingTarget& target) {
    settings.tensor_parallel = by.integer("tensor_parallel_size", 1);
    settings.pipeline_parallel = by.integer("pipeline_parallel_size", 1);
    settings.data_parallel = by.integer("data_parallel_size", 1);
    // Attention that is split by request shares the tensor-parallel ranks: no more devices.
    if (by.flag("attention_data_parallel", false))
        settings.attention_data_parallel = settings.data_parallel > 1
                                               ? std::exchange(settings.data_parallel, 1)
                                               : settings.tensor_parallel;
    settings.expert_parallel = by.flag("expert_parallel", false) ||
                               by.integer("expert_parallel_size", 1) > 1 ||
                               (target.traits.replicas_share_experts &&
                                settings.data_parallel > 1 && target.model.experts > 0);
    settings.weight_offload_bytes = by.number("weight_offload_gib").value_or(0) * gib;
}

void read_speculation(ServingSettings& settings, ByConcept& by,
                      const std::vector<ModelSpec>& models, const EngineTraits& traits) {
    const std::string method = by.meaning("speculative_method");
    if (method.empty() || method == "none") return;
    settings.speculation.method = method;
    (void)traits.acceptance_of(method);
    const std::int64_t guesses = by.integer("speculative_tokens", 0);
    settings.speculation.tokens = guesses > 0 ? guesses : by.integer("speculative_ngram_tokens", 3);
    const std::string draft = by.text("draft_model");
    if (settings.speculation.method != "draft_model") return;
    const auto known = served_model(draft, models);
    if (!known || !known->model.weights.contains(known->quantization))
        throw UsageError("the draft model '" + draft + "' is not among the known models");
    settings.speculation.draft_bytes = known->model.weights.at(known->quantization).per_token;
}

}  // namespace

ServingReader::ServingReader(Engine engine, EngineTraits traits, std::vector<ModelSpec> models,
                             HardwareSpec hardware, const std::string& version,
                             std::shared_ptr<const CommandReader> commands)
    : engine_(widened(std::move(engine))),
      traits_(std::move(traits)),
      models_(std::move(models)),
      hardware_(std::move(hardware)),
      commands_(commands != nullptr ? std::move(commands)
                                    : std::make_shared<const CommandReader>(std::vector{engine_})),
      composition_(described(engine_, version)),
      space_(bounded(composition_.parameters()), composition_.constraints()) {
    std::erase_if(traits_.kernels, [&](const auto& of) { return of.first != hardware_.name; });
    std::erase_if(engine_.parameters, [&](const EngineParameter& declared) {  // of other versions
        return space_.find(declared.parameter.name) == nullptr && !is_text(declared);
    });
}

Serving ServingReader::read(const Command& command) const {
    CommandSettings said = commands_->read(command, engine_.name);
    if (said.start != CommandSettings::Start::launcher || said.engine->name != engine_.name)
        throw UsageError("this is no command of " + engine_.name + ": " + command.text());
    if (said.model.empty()) throw UsageError(engine_.name + ": " + no_model_text(engine_));
    Serving serving;
    serving.model = said.model;
    Assignment texts;
    std::erase_if(said.settings, [&](const Setting& setting) {
        const bool names = !setting.parameters.empty() && is_text(*setting.parameters.front());
        if (names) texts[setting.parameters.front()->parameter.name] = setting.value;
        return names || (setting.not_about_speed && setting.kind == Setting::Kind::flag);
    });
    Composition::Parsed parsed = composition_.parse(said, serving.model);
    for (const Setting& setting : said.settings) {
        const bool known = !contains(parsed.unknown, setting.text());
        // of these a parameter with a value that is not listed: a parser of one's own
        if (known || setting.not_about_speed) continue;
        if (setting.words.front().starts_with('-'))
            serving.unknown.push_back(setting.key.empty() ? setting.words.front() : setting.text());
    }
    const auto checkpoint = served_model(serving.model, models_);
    if (!checkpoint)
        throw UsageError("the figures of the model '" + serving.model + "' are not known; known: " +
                         listed(nearest_first(serving.model, names_in(models_))));
    serving.target = {checkpoint->model, hardware_, traits_};
    parsed.values.merge(texts);
    ByConcept by(engine_, parsed.values, traits_, hardware_, serving.parameters);
    read_quantization(serving, by, *checkpoint);
    read_cache(serving, by);
    read_scheduling(serving.settings, by, traits_, checkpoint->model);
    by.settle("max_context_tokens", serving.settings.max_context_tokens);
    by.settle("max_batched_tokens", serving.settings.max_batched_tokens);
    read_kernels(serving, by);
    read_parallel(serving.settings, by, serving.target);
    read_speculation(serving.settings, by, models_, traits_);
    check_rules(serving);
    return serving;
}

/// The engine's own rules: what they forbid, it refuses at the start.
void ServingReader::check_rules(Serving& serving) const {
    if (!serving.refused.serves) return;
    const std::int64_t asked = serving.settings.max_context_tokens;
    const std::int64_t made_for = serving.target.model.context_tokens;
    if (asked > made_for && traits_.log.contains("context_too_long")) {
        serving.refused =
            refuses(traits_, "context_too_long",
                    {{"context", std::to_string(asked)}, {"made_for", std::to_string(made_for)}},
                    "the model was made for " + std::to_string(made_for) + " tokens, not " +
                        std::to_string(asked));
        return;
    }
    const auto refuse = [&](const std::string& rule) {
        serving.refused = refuses(traits_, "rule", {{"rule", rule}}, rule);
    };
    const std::string& chip = hardware_.architecture;
    if (const auto& chips = engine_.architectures; !chips.empty() && !contains(chips, chip))
        return refuse(engine_.name + " does not run on " + hardware_.name + " (" + chip + ")");
    for (const EngineParameter& declared : engine_.parameters) {
        const auto* set_to = entry_in(serving.parameters, declared.parameter.name);
        if (set_to == nullptr ||
            *set_to == declared.parameter.value_when_unset)  // no engine refuses its own
            continue;
        const auto* chips = entry_in(declared.architectures, text_of(*set_to));
        if (chips == nullptr || contains(*chips, chip)) continue;
        return refuse(declared.parameter.name + "=" + text_of(*set_to) + " is not for " +
                      hardware_.name + " (" + chip + ")");
    }
    const auto value_of = [&](const std::string& name) {
        const auto* found = entry_in(serving.parameters, name);
        return found != nullptr ? *found : Value(Unset{});
    };
    for (const Constraint& constraint : engine_.constraints) {
        const auto* rule = std::get_if<Forbid>(&constraint);
        if (rule == nullptr || !speaks_of_texts(engine_, constraint)) continue;
        if (all_of(rule->values, [&](const auto& entry) {
                return contains(entry.second, value_of(entry.first));
            }))
            return refuse(text_of(constraint) + ": " + rule->because);
    }
    const auto facts = facts_of(serving.target.model);
    for (const Constraint& constraint : engine_.constraints) {
        const auto* rule = std::get_if<Require>(&constraint);
        if (rule == nullptr || !speaks_of_the_model(*rule)) continue;
        const Expression stated = with_model_facts(rule->expression, facts);
        std::vector<Value> values;
        for (const std::string& name : stated.names()) values.push_back(value_of(name));
        if (stated.evaluate(
                [&](std::size_t i) { return is_unset(values[i]) ? nullptr : &values[i]; }) == false)
            return refuse(stated.text() + " (" + rule->because + ")");
    }
    Assignment set;
    for (const auto& [name, value] : serving.parameters)
        if (const Parameter* parameter = space_.find(name);
            parameter != nullptr && parameter->contains(value))
            set[name] = value;
    if (const auto violated = space_.violations(space_.completed(set)); !violated.empty())
        refuse(violated.front());
}

}  // namespace servetune
