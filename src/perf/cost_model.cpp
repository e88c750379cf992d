// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/cost_model.hpp"

#include "base/nearest.hpp"
#include "base/present.hpp"
#include "base/text.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace servetune {
namespace {

constexpr double bytes_16bit = 2;

/// Of a layer, with its dense weights: queries, keys and values; output; and two of its network, or
/// router and shared experts.
constexpr double products_of_a_layer = 4;
/// The same of latent attention: queries and the latent are made in two products each.
constexpr double products_of_a_latent_layer = 6;
constexpr double latent_rope = 64;  ///< numbers of a latent key that turn with the position

/// Beyond these a command is mistaken, and products of such numbers leave 64 bits.
constexpr std::int64_t most_tokens = std::int64_t{1} << 40;
constexpr double most_copies = 1 << 20;
constexpr double above_0 = std::numeric_limits<double>::min();
constexpr double any = std::numeric_limits<double>::max();

void check(const char* name, double value, double low = above_0, double high = any) {
    if (value >= low && value <= high) return;
    throw UsageError(std::string(name) + ": a number " +
                     (low == above_0 ? "above 0" : "of at least " + text_of(low)) +
                     (high < any ? " and at most " + text_of(high) : "") + " wanted, got " +
                     text_of(value));
}
void check(const char* name, std::int64_t value, double low, double high) {
    check(name, double(value), low, high);
}

void check_target(const ServingTarget& target, const ServingSettings& settings) {
    constexpr auto tokens = double(most_tokens);
    check("memory_fraction", settings.memory_fraction, above_0, 1);
    check("cache_bits", settings.cache_bits);
    check("max_sequences", settings.max_sequences, 1, tokens);
    check("max_batched_tokens", settings.max_batched_tokens, 1, tokens);
    check("block_tokens", settings.block_tokens, 1, tokens);
    check("stream_interval", settings.stream_interval, 1, tokens);
    check("tensor_parallel", settings.tensor_parallel, 1, most_copies);
    check("pipeline_parallel", settings.pipeline_parallel, 1, most_copies);
    check("data_parallel", settings.data_parallel, 1, most_copies);
    check("front_ends", settings.front_ends, 1, most_copies);
    check("speculation.tokens", settings.speculation.tokens, 0, most_copies);
    check("micro_batch_tokens", settings.micro_batch_tokens, 0, any);
    check("max_context_tokens", settings.max_context_tokens, 0, any);
    check("graph_max_tokens", settings.graph_max_tokens, 0, any);
    check("reserved_share", settings.reserved_share, 0);
    check("weight_offload_bytes", settings.weight_offload_bytes, 0);
    check("cache_bytes", settings.cache_bytes.value_or(0), 0);
    check("cache_tokens", settings.cache_tokens.value_or(0), 0, any);
    check("the device's memory_bytes", target.hardware.memory_bytes);
    check("the device's memory_bandwidth_bytes_per_second",
          target.hardware.memory_bandwidth_bytes_per_second);
    check("bandwidth_efficiency", target.traits.bandwidth_efficiency);
    if (settings.devices() > 1) check("link_efficiency", target.traits.link_efficiency);
    if ((settings.weight_offload_bytes > 0) && !target.hardware.link_bytes_per_second &&
        !target.hardware.shared_memory)
        throw UsageError("the link of " + target.hardware.name +
                         " to the host's memory is not known: no weights can be offloaded");
}

const ModelWeights& weights_of(const ModelSpec& model, const std::string& quantization) {
    if (const auto* found = entry_in(model.weights, quantization)) return *found;
    throw UsageError(
        "the bytes of " + model.name + " as '" + quantization +
        "' are not known; known: " + listed(nearest_first(quantization, names_in(model.weights))));
}

const AttentionTraits& attention_of(const EngineTraits& traits, const std::string& named) {
    const std::string& name = named.empty() ? traits.default_attention : named;
    if (const auto* found = entry_in(traits.attention, name)) return *found;
    throw UsageError(
        "how fast attention is in " + traits.engine + " with '" + name +
        "' is not known; known: " + listed(nearest_first(name, names_in(traits.attention))));
}

/// How many sizes an engine records graphs for up to `most` tokens: 1, 2, 4, then every 8 up to
/// 256, then every 16.
double graph_sizes(std::int64_t most) {
    if (most <= 0) return 0;
    const auto m = double(most);
    return std::min(3.0, std::floor(std::log2(m)) + 1) + std::floor(std::min(m, 256.0) / 8) +
           std::floor(std::max(0.0, m - 256) / 16);
}

/// Whether keys and values are kept in a compressed form that all heads share (MLA): then devices
/// cannot share them out.
bool latent_cache(const ModelSpec& model) {
    if (model.latent_width > 0) return true;
    const auto whole =
        double(2 * model.attention_layers * model.kv_heads * model.head_dim) * bytes_16bit;
    return model.kv_bytes_per_token_16bit < 0.99 * whole;
}

double bytes_for_one_token(const ModelSpec& model, const ServingSettings& settings,
                           std::int64_t context) {
    const double all = model.kv_bytes_per_token_16bit;
    double sliding = model.sliding_kv_bytes_per_token_16bit;
    if (sliding == 0 && model.sliding_layers > 0)
        sliding = all * double(model.sliding_layers) / double(model.attention_layers);
    const double dropped = model.sliding_window > 0
                               ? 1 - std::min(1.0, double(model.sliding_window) / double(context))
                               : 0;
    const std::int64_t cut =
        latent_cache(model) ? 1 : std::min(settings.tensor_parallel, model.kv_heads);
    return ((all - sliding * dropped) * settings.cache_bits / 16 / double(cut) +
            model.fixed_bytes_per_token) /
           double(settings.pipeline_parallel);
}

}  // namespace

CostModel::CostModel(const ServingTarget& target, const ServingSettings& settings)
    : target_(target), settings_(settings) {
    check_target(target_, settings_);
    const ModelSpec& model = target_.model;
    weights_ = weights_of(model, settings_.quantization);
    attention_ = attention_of(target_.traits, settings_.attention_backend);
    check("prefill_efficiency of the attention back end", attention_.prefill_efficiency);
    check("decode_efficiency of the attention back end", attention_.decode_efficiency);

    // A step reads each expert that one of its tokens chose; the rest of the weights it reads
    // whole. Both follow from what one token reads (per_token = shared + experts k/E) and what all
    // tokens read (all = shared + experts).
    const double embedding =
        model.tied_embeddings ? 0 : double(model.vocabulary * model.hidden_size) * bytes_16bit;
    const double all = std::max(weights_.bytes - embedding, weights_.per_token);
    const double chosen =
        model.experts > 0 ? double(model.experts_per_token) / double(model.experts) : 1;
    expert_bytes_ = chosen < 1 ? (all - weights_.per_token) / (1 - chosen) : 0;
    shared_bytes_ = weights_.per_token - expert_bytes_ * (chosen < 1 ? chosen : 0);

    const double active = model.parameters_active - model.parameters_embedding;
    // of products with weights: as the bytes that a token reads, where the file does not say
    const double of_experts = model.experts == 0 ? 0
                              : model.expert_parameters > 0
                                  ? model.expert_parameters * chosen
                                  : active * expert_bytes_ * chosen / weights_.per_token;
    expert_flops_per_token_ = 2 * std::min(of_experts, active);
    flops_per_token_ = 2 * active - expert_flops_per_token_;
    head_flops_ = 2 * double(model.vocabulary * model.hidden_size);
    gemm_ = kernel("gemm", weights_.computes_in);
    moe_ = kernel("moe", weights_.experts_compute_in.empty() ? weights_.computes_in
                                                             : weights_.experts_compute_in);
    const std::string cache = settings_.cache_bits <= 8.5 ? "fp8" : "bf16";
    const std::string kind = latent_cache(model) ? "mla_" : "";
    prefill_ = kernel(kind + "prefill", cache);
    decode_ = kernel(kind + "decode", cache);
    window_prefill_ = kernel("window_prefill", cache);
    window_decode_ = kernel("window_decode", cache);
    plan_memory();
    if (settings_.devices() == 1) return;
    const std::int64_t group =
        settings_.tensor_parallel * settings_.pipeline_parallel;  // which exchange in each step
    (void)link(settings_.expert_parallel ? settings_.devices() : group);
}

std::int64_t CostModel::max_context_tokens() const {
    const std::int64_t made_for = target_.model.context_tokens;
    if (settings_.max_context_tokens == 0) return made_for;
    return settings_.max_context_tokens;
}

double CostModel::activation_bytes(std::int64_t tokens, std::int64_t sequences) const {
    const EngineTraits& traits = target_.traits;
    return traits.activation_bytes_per_token_and_width *
               double(tokens * target_.model.hidden_size) +
           traits.logits_bytes_per_entry * double(sequences * target_.model.vocabulary) /
               double(settings_.tensor_parallel);
}

void CostModel::plan_memory() {
    const EngineTraits& traits = target_.traits;
    const std::int64_t group = settings_.tensor_parallel * settings_.pipeline_parallel;
    const double experts_cut = double(settings_.expert_parallel ? settings_.devices() : group);
    MemoryPlan& plan = memory_;
    plan.device_bytes = target_.hardware.memory_bytes;
    plan.context_bytes = traits.context_bytes;
    plan.weights_bytes = std::max(0.0, (weights_.bytes - expert_bytes_) / double(group) +
                                           expert_bytes_ / experts_cut +
                                           settings_.speculation.draft_bytes / double(group) -
                                           settings_.weight_offload_bytes);
    plan.activation_bytes = activation_bytes(settings_.max_batched_tokens, settings_.max_sequences);
    plan.graph_bytes = settings_.graph_max_tokens > 0
                           ? traits.graph_bytes + traits.graph_bytes_per_size *
                                                      graph_sizes(settings_.graph_max_tokens)
                           : 0;
    plan.cache_bytes_per_token = bytes_for_one_token(
        target_.model, settings_, std::max<std::int64_t>(1, max_context_tokens()));

    const double fraction = settings_.memory_fraction;
    const double loaded = plan.context_bytes + plan.weights_bytes;
    double cache = 0;
    switch (traits.fraction_of) {
        case EngineTraits::FractionOf::device:
            plan.usable_bytes = fraction * plan.device_bytes;
            cache = plan.usable_bytes - loaded - plan.activation_bytes;
            break;
        case EngineTraits::FractionOf::weights_cache:
            plan.usable_bytes =
                fraction * (plan.device_bytes - plan.context_bytes) + plan.context_bytes;
            cache = plan.usable_bytes - loaded;
            break;
        case EngineTraits::FractionOf::free:
            plan.usable_bytes = plan.device_bytes;
            cache = fraction * (plan.device_bytes - loaded - plan.activation_bytes);
            break;
        case EngineTraits::FractionOf::none:
            plan.usable_bytes = plan.device_bytes;
            cache = plan.device_bytes - loaded - plan.activation_bytes - plan.graph_bytes;
            break;
    }
    // What linear layers keep of a sequence is as large at its first token as at its last.
    const double state = target_.model.state_bytes_per_sequence / double(group);
    if (traits.state_share > 0 && state > 0)
        settings_.max_sequences =
            whole_number_within(traits.state_share * cache / state, 1, settings_.max_sequences);
    plan.state_bytes = state * double(settings_.max_sequences);
    const double left = settings_.cache_bytes.value_or(cache) - plan.state_bytes;
    plan.missing_bytes = std::max({0.0, -cache, -left});
    cache = std::max(0.0, left);
    const double block = plan.cache_bytes_per_token * double(settings_.block_tokens);
    plan.cache_blocks = whole_number_within(cache / block, 0, most_tokens / settings_.block_tokens);
    if (settings_.cache_tokens) {
        const std::int64_t asked = *settings_.cache_tokens / settings_.block_tokens;
        plan.cache_blocks = traits.fraction_of == EngineTraits::FractionOf::none
                                ? asked
                                : std::min(plan.cache_blocks, asked);
    }
    plan.cache_tokens = plan.cache_blocks * settings_.block_tokens;
    plan.cache_bytes = double(plan.cache_blocks) * block;
    plan.free_bytes = plan.device_bytes - loaded - plan.activation_bytes - plan.graph_bytes -
                      plan.cache_bytes - plan.state_bytes;
}

CostModel::Kernel CostModel::kernel(const std::string& operation, const std::string& type) const {
    const HardwareSpec& hardware = target_.hardware;
    const EngineTraits& traits = target_.traits;
    const bool attention = operation.ends_with("prefill") || operation.ends_with("decode");
    // In 32 bits as in 16, with twice the bytes and the peak of its own.
    std::string computes_in = type == "fp32" ? "bf16" : type;
    const KernelEfficiency* measured = traits.kernel(hardware.name, operation, computes_in);
    if (measured == nullptr && operation.starts_with("window_"))
        measured = traits.kernel(hardware.name, operation.substr(7), computes_in = type);
    if (measured == nullptr) computes_in = attention ? "bf16" : type;
    else if (type == "fp32") computes_in = type;
    const auto flops = hardware.flops(computes_in);
    if (!flops)
        throw UsageError("the FLOP/s of " + hardware.name + " in " + computes_in +
                         " are not known");
    check("the device's FLOP/s", *flops);
    KernelEfficiency found{traits.compute(type), traits.bandwidth_efficiency,
                           traits.kernel_seconds};
    double of_backend = 1;  // another than the engine's own choice is as much slower everywhere
    double reading_of_backend = 1;
    if (attention && measured == nullptr)  // decoding multiplies as fast as prompts do
        found = {attention_.prefill_efficiency, attention_.decode_efficiency,
                 traits.kernel_seconds};
    else if (attention) {
        const AttentionTraits& usual = attention_of(traits, traits.default_attention);
        of_backend = attention_.prefill_efficiency / usual.prefill_efficiency;
        reading_of_backend = attention_.decode_efficiency / usual.decode_efficiency;
    }
    if (measured != nullptr) found = *measured;
    check("compute_efficiency", found.compute * *flops);
    return {*flops * found.compute * of_backend,
            hardware.memory_bandwidth_bytes_per_second * found.bandwidth * reading_of_backend,
            found.seconds * (measured != nullptr ? traits.kernel_call_share : 1), found.sharpness,
            measured != nullptr ? 1.0 : 0.0};
}

double CostModel::Kernel::time(double operations, double bytes) const {
    const double computing = operations / operations_per_second;
    const double reading = bytes / bytes_per_second;
    const double longer = std::max(computing, reading);
    if (!(sharpness > 0) || !(longer > 0)) return longer;
    const double shorter = std::min(computing, reading);
    return longer * std::pow(1 + std::pow(shorter / longer, sharpness), 1 / sharpness);
}

double CostModel::linear_seconds(double tokens, double sampled) const {
    const ModelSpec& model = target_.model;
    const auto tensor = double(settings_.tensor_parallel);
    const auto layers = double(model.layers);
    const double passes = settings_.micro_batch_tokens > 0
                              ? std::ceil(tokens / double(settings_.micro_batch_tokens))
                              : 1;
    const auto copies = double(settings_.attention_data_parallel);
    // What the products read and write beside weights, where the kernels were measured with it
    // (docs/explanation/simulator.md, "Kernels"): 4 bytes a number read, 2 written.
    const auto hidden = double(model.hidden_size);
    const auto attention = double(model.attention_heads * model.head_dim);
    const double network =
        std::max(0.0, (flops_per_token_ / 2 / layers - 2.1 * hidden * attention) / (3 * hidden));
    const double beside = gemm_.measured * tokens / passes * layers *
                          (12 * hidden + (6.4 * attention + 8 * network) / tensor);
    const double products = latent_cache(model) ? products_of_a_latent_layer : products_of_a_layer;
    double seconds =
        passes * (products * layers * gemm_.seconds +
                  gemm_.time((tokens * flops_per_token_ + sampled * head_flops_) / tensor / passes,
                             shared_bytes_ * copies / tensor + beside));
    if (expert_bytes_ > 0) {
        // A token chooses k of E experts; the share of all that n tokens choose, evenly: 1 - (1 -
        // k/E)^n.
        const double replicas = settings_.expert_parallel ? double(settings_.data_parallel) : 1;
        const double missed = 1 - double(model.experts_per_token) / double(model.experts);
        const double read = expert_bytes_ / (tensor * replicas) *
                            (1 - std::pow(missed, tokens / passes * replicas));
        const double with = layers - double(model.dense_layers);
        const double pairs = tokens / passes * double(model.experts_per_token) * with;
        const double inner =
            expert_flops_per_token_ / 2 / with / double(model.experts_per_token) / (3 * hidden);
        const double beside_experts =
            moe_.measured * pairs *
            (6 * hidden / (settings_.expert_parallel ? tensor : 1) + 8 * inner / tensor);
        seconds += passes * (with * moe_.seconds +
                             moe_.time(tokens * expert_flops_per_token_ / tensor / passes,
                                       read + beside_experts));
    }
    if (settings_.weight_offload_bytes > 0 && target_.hardware.link_bytes_per_second)
        seconds = std::max(seconds, passes * settings_.weight_offload_bytes /
                                        (present(target_.hardware.link_bytes_per_second) / 2));
    return seconds;
}

double CostModel::attention_seconds(const StepWork& work, double checked) const {
    const ModelSpec& model = target_.model;
    const auto tensor = double(settings_.tensor_parallel);
    const std::int64_t groups = settings_.attention_data_parallel;
    const bool latent = latent_cache(model);
    const auto cut = double(
        groups * (latent ? 1 : std::min(settings_.tensor_parallel / groups, model.kv_heads)));
    const auto all = double(model.attention_layers);
    const auto sliding = double(model.sliding_layers);
    // A latent cache is multiplied as it is while decoding; of prompts keys and values are made.
    const auto heads = double(model.attention_heads);
    const auto width = double(model.head_dim);
    const double of_prompts = latent ? width - latent_rope / 2 : width;
    const double of_decoding =
        latent && model.latent_width > 0 ? double(model.latent_width) - latent_rope / 2 : width;
    const auto of_layers = [&](double layers, double bytes_16bit_per_token, double pairs,
                               double context, const Kernel& prefill, const Kernel& decode) {
        if (layers <= 0) return 0.0;
        const double bytes = bytes_16bit_per_token * settings_.cache_bits / 16 / cut;
        const double operations = 4 * heads * layers / tensor;
        double seconds = 0;
        if (work.prefill_tokens > 0) {
            const auto tokens = double(work.prefill_tokens);
            seconds +=
                layers * prefill.seconds +
                prefill.time(pairs * operations * of_prompts,
                             work.prefill_context_tokens * bytes +
                                 prefill.measured * tokens * (bytes + operations * of_prompts));
        }
        if (work.decode_sequences > 0) {
            const double tokens = double(work.decode_sequences) * checked;
            seconds +=
                layers * decode.seconds +
                decode.time(context * checked * operations * of_decoding,
                            context * bytes + decode.measured * tokens * operations * of_decoding);
        }
        return seconds;
    };
    const double sliding_bytes = model.sliding_kv_bytes_per_token_16bit > 0
                                     ? model.sliding_kv_bytes_per_token_16bit
                                     : model.kv_bytes_per_token_16bit * sliding / all;
    const double state = 2 * model.state_bytes_per_sequence * double(work.decode_sequences);
    return of_layers(all - sliding, model.kv_bytes_per_token_16bit - sliding_bytes,
                     work.prefill_pairs, work.decode_context_tokens, prefill_, decode_) +
           of_layers(sliding, sliding_bytes, work.prefill_windowed_pairs,
                     work.decode_windowed_context_tokens, window_prefill_, window_decode_) +
           state / tensor / gemm_.bytes_per_second;
}

double CostModel::cache_bytes(std::int64_t tokens) const {
    ServingSettings whole = settings_;
    whole.tensor_parallel = whole.pipeline_parallel = 1;
    return double(tokens) *
           bytes_for_one_token(target_.model, whole, std::max<std::int64_t>(1, tokens));
}

double CostModel::link(std::int64_t devices) const {
    const HardwareSpec& hardware = target_.hardware;
    if (hardware.devices_per_node && devices > *hardware.devices_per_node)
        throw UsageError(std::to_string(devices) + " devices are more than a node of " +
                         hardware.name + " has, and an engine runs on one node");
    if (!hardware.link_bytes_per_second)
        throw UsageError(std::to_string(devices) + " devices: how fast those of " + hardware.name +
                         " talk to each other is not known (link_bytes_per_second)");
    return *hardware.link_bytes_per_second / 2 * target_.traits.link_efficiency;
}

double CostModel::communication_seconds(double tokens) const {
    if (settings_.devices() == 1) return 0;
    const ModelSpec& model = target_.model;
    const double sent = tokens * double(model.hidden_size) * bytes_16bit;
    const EngineTraits& traits = target_.traits;
    const auto exchange = [&](double bytes, std::int64_t devices) {
        std::string group = std::to_string(devices);
        const KernelEfficiency* measured =
            traits.kernel(target_.hardware.name, "all_reduce", group);
        if (measured == nullptr) return traits.all_reduce_seconds + bytes / link(devices);
        const double sending =
            bytes / (link(devices) / traits.link_efficiency * measured->bandwidth);
        return std::pow(std::pow(measured->seconds, measured->sharpness) +
                            std::pow(sending, measured->sharpness),
                        1 / measured->sharpness);
    };
    // After attention and after the network, or experts, of each layer. Groups that share the
    // network's weights, or experts, gather the tokens of all and sum the results.
    const auto reduced = [&](double bytes, std::int64_t devices) {
        const auto n = double(devices);
        return devices > 1 ? exchange(bytes * 2 * (n - 1) / n, devices) : 0;
    };
    const auto layers = double(model.layers);
    const std::int64_t groups = settings_.attention_data_parallel;
    const std::int64_t replicas =
        settings_.expert_parallel && model.experts > 0 ? settings_.data_parallel : 1;
    return double(settings_.pipeline_parallel - 1) *
               exchange(sent, settings_.tensor_parallel * settings_.pipeline_parallel) +
           layers * reduced(sent / double(groups), settings_.tensor_parallel / groups) +
           layers * reduced(sent * double(replicas), settings_.tensor_parallel * replicas);
}

double CostModel::draft_seconds(double sequences) const {
    if (settings_.speculation.tokens == 0 || settings_.speculation.method == "ngram") return 0;
    const ModelSpec& model = target_.model;
    const double head = double(model.vocabulary * model.hidden_size) * bytes_16bit;
    const double one_layer = shared_bytes_ / double(model.layers) + head;
    const double bytes =
        settings_.speculation.draft_bytes > 0 ? settings_.speculation.draft_bytes : one_layer;
    const double operations = bytes;  // two for each weight of two bytes
    const auto tensor = double(settings_.tensor_parallel);
    return double(settings_.speculation.tokens) *
           (gemm_.time(sequences * operations, bytes) / tensor +
            target_.traits.eager_layer_seconds);
}

double CostModel::launch_seconds() const {
    const EngineTraits& traits = target_.traits;
    const auto layers = double(target_.model.layers);
    const double with = target_.model.experts > 0 && traits.eager_expert_layer_seconds > 0
                            ? layers - double(target_.model.dense_layers)
                            : 0;
    return (layers - with) * traits.eager_layer_seconds + with * traits.eager_expert_layer_seconds;
}

StepTime CostModel::step(const StepWork& work) const {
    StepTime time;
    const std::int64_t sequences = work.decode_sequences + work.prefill_sequences;
    if (sequences == 0) return time;
    const EngineTraits& traits = target_.traits;
    const auto decoding = double(work.decode_sequences);
    const double checked = 1 + double(settings_.speculation.tokens);

    // Stages of a pipeline work on different sequences at the same time: in a round, `streams`
    // batches pass through all stages.
    const double streams = double(std::min(settings_.pipeline_parallel, sequences));
    const double tokens = (decoding * checked + double(work.prefill_tokens)) / streams;
    const double sampled = (decoding * checked + double(work.prefill_finished)) / streams;
    time.linear = linear_seconds(tokens, sampled);
    time.attention = attention_seconds(work, checked) / streams;
    time.communication = communication_seconds(tokens);
    time.draft = draft_seconds(decoding);
    time.device =
        time.linear + time.attention + time.communication + time.draft +
        double(target_.model.layers) *
            (traits.layer_seconds + traits.layer_bytes_per_token_and_width * tokens *
                                        double(target_.model.hidden_size) / gemm_.bytes_per_second);
    if (!settings_.compiled) time.device *= traits.uncompiled_factor;
    const bool graph = tokens <= double(settings_.graph_max_tokens) &&
                       (work.prefill_tokens == 0 || traits.prompts_in_graphs);
    if (!graph) time.device = std::max(time.device, launch_seconds());
    time.host = traits.step_overhead_seconds + traits.sequence_overhead_seconds * double(sequences);
    time.total = settings_.overlap ? std::max(time.device, time.host) : time.device + time.host;
    return time;
}

double CostModel::start_seconds() const {
    const EngineTraits& traits = target_.traits;
    return traits.start_seconds + memory_.weights_bytes / traits.load_bytes_per_second +
           (settings_.compiled ? traits.compile_seconds : 0) +
           graph_sizes(settings_.graph_max_tokens) * traits.graph_seconds_per_size;
}

double CostModel::tokens_per_step() const {
    const Speculation& speculation = settings_.speculation;
    if (speculation.tokens == 0) return 1;
    const double right = target_.traits.acceptance_of(speculation.method);
    return (1 - std::pow(right, double(speculation.tokens + 1))) / (1 - right);
}

std::string MemoryPlan::text() const {
    std::string result;
    const auto row = [&](const char* name, double bytes) {
        std::array<char, 80> line{};
        (void)std::snprintf(line.data(), line.size(), "  %-28s %9.2f GiB\n", name, bytes / gib);
        result += line.data();
    };
    row("device", device_bytes);
    row("the engine allows itself", usable_bytes);
    row("context and libraries", context_bytes);
    row("weights", weights_bytes);
    row("activations", activation_bytes);
    row("graphs", graph_bytes);
    row("cache", cache_bytes);
    if (state_bytes > 0) row("state of sequences", state_bytes);
    if (missing_bytes > 0) row("missing", missing_bytes);
    row("left", free_bytes);
    if (free_bytes < 0)
        result += "  less than nothing is left: a full step of prompts would fail\n";
    result += "  cache: " + std::to_string(cache_tokens) + " tokens in " +
              std::to_string(cache_blocks) + " blocks\n";
    return result;
}

}  // namespace servetune
