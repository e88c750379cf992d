// SPDX-License-Identifier: Apache-2.0
// Memory and time of one step: what physics forbids whatever the figures are, by random cases.
#include "support/test.hpp"

#include "servetune/detail/perf/cost_model.hpp"
#include "servetune/rng.hpp"
#include "support/settings_for.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

using namespace servetune;
using namespace servetune::test;

namespace {

double between(Rng& rng, double low, double high) {
    return low * std::exp(rng.uniform() * std::log(high / low));
}
std::int64_t whole(Rng& rng, double low, double high) {
    return std::llround(between(rng, low, high));
}
bool coin(Rng& rng) { return rng.index(2) == 0; }

ModelSpec random_model(Rng& rng) {
    ModelSpec model;
    model.name = "random/model";
    model.layers = whole(rng, 4, 128);
    model.attention_layers = coin(rng) ? model.layers : std::max<std::int64_t>(1, model.layers / 4);
    model.hidden_size = whole(rng, 500, 16'000);
    model.kv_heads = whole(rng, 1, 32);
    model.attention_heads = model.kv_heads * whole(rng, 1, 16);
    model.head_dim = 64 << rng.index(3);
    model.vocabulary = whole(rng, 1000, 300'000);
    model.tied_embeddings = coin(rng);
    model.context_tokens = whole(rng, 2000, 1e6);
    model.kv_bytes_per_token_16bit =
        double(4 * model.attention_layers * model.kv_heads * model.head_dim);
    if (rng.index(4) == 0) model.kv_bytes_per_token_16bit /= 20;  // latent
    if (rng.index(3) == 0) {
        model.sliding_window = whole(rng, 64, 8000);
        model.sliding_layers = std::int64_t(rng.index(std::size_t(model.attention_layers) + 1));
    }
    const double embedding = double(model.vocabulary * model.hidden_size);
    const double linear = between(rng, 1e8, 1e12);
    model.parameters_embedding = embedding * (model.tied_embeddings ? 1 : 2);
    model.parameters_active = linear + model.parameters_embedding;
    const double bits = coin(rng) ? 16 : coin(rng) ? 8 : 4.5;
    ModelWeights weights{linear * bits / 8 + 2 * model.parameters_embedding,
                         linear * bits / 8 + 2 * embedding, bits > 8 ? "bf16" : "fp8"};
    if (coin(rng)) {
        model.experts = whole(rng, 4, 512);
        model.experts_per_token = whole(rng, 1, double(model.experts - 1));
        const double share = double(model.experts_per_token) / double(model.experts);
        const double in_experts = rng.uniform();
        model.parameters_active =
            linear * (1 - in_experts * (1 - share)) + model.parameters_embedding;
        weights.per_token = linear * (1 - in_experts * (1 - share)) * bits / 8 + 2 * embedding;
    }
    model.weights["some"] = weights;
    return model;
}

HardwareSpec random_hardware(Rng& rng) {
    HardwareSpec chip;
    chip.name = "random";
    chip.memory_bytes = between(rng, 1e10, 3e11);
    chip.memory_bandwidth_bytes_per_second = between(rng, 1e11, 1e13);
    chip.flops_per_second["bf16"] = between(rng, 1e13, 3e15);
    if (coin(rng)) chip.flops_per_second["fp8"] = 2 * chip.flops_per_second["bf16"];
    chip.link_bytes_per_second = between(rng, 3e10, 2e12);
    return chip;
}

EngineTraits random_traits(Rng& rng) {
    EngineTraits traits;
    traits.engine = "random";
    traits.fraction_of =
        std::array{EngineTraits::FractionOf::device, EngineTraits::FractionOf::weights_cache,
                   EngineTraits::FractionOf::free, EngineTraits::FractionOf::none}[rng.index(4)];
    const auto share = [&] { return between(rng, 0.1, 1); };
    traits.compute_efficiency["other"] = share();
    traits.bandwidth_efficiency = share();
    traits.link_efficiency = share();
    traits.default_attention = "some";
    traits.attention["some"] = {share(), share(), {}, {}};
    traits.step_overhead_seconds = between(rng, 1e-5, 1e-2);
    traits.sequence_overhead_seconds = between(rng, 1e-7, 1e-4);
    traits.eager_layer_seconds = between(rng, 1e-5, 1e-3);
    traits.uncompiled_factor = between(rng, 1, 1.5);
    traits.all_reduce_seconds = between(rng, 1e-6, 1e-4);
    traits.context_bytes = between(rng, 1e8, 2e9);
    traits.activation_bytes_per_token_and_width = between(rng, 1, 100);
    traits.logits_bytes_per_entry = between(rng, 1, 20);
    traits.graph_bytes = between(rng, 1e7, 1e9);
    traits.graph_bytes_per_size = between(rng, 1e5, 1e8);
    traits.load_bytes_per_second = between(rng, 1e8, 1e10);
    traits.acceptance = {{"ngram", 0.3}, {"eagle3", 0.7}, {"draft_model", 0.7}};
    return traits;
}

ServingSettings random_settings(Rng& rng) {
    ServingSettings settings = settings_for("some");
    settings.memory_fraction = between(rng, 0.3, 1);
    settings.cache_bits = std::array{4.5, 8.0, 16.0}[rng.index(3)];
    settings.max_sequences = whole(rng, 1, 4096);
    settings.max_batched_tokens = whole(rng, 64, 100'000);
    if (rng.index(4) == 0) settings.micro_batch_tokens = whole(rng, 32, 2048);
    settings.max_context_tokens = coin(rng) ? 0 : whole(rng, 100, 1e6);
    settings.block_tokens = std::int64_t{1} << rng.index(8);
    settings.overlap = coin(rng);
    settings.compiled = coin(rng);
    settings.graph_max_tokens = coin(rng) ? 0 : whole(rng, 1, 2000);
    settings.tensor_parallel = std::int64_t{1} << rng.index(4);
    settings.pipeline_parallel = rng.index(3) == 0 ? std::int64_t{1} << rng.index(3) : 1;
    settings.data_parallel = rng.index(3) == 0 ? std::int64_t{1} << rng.index(3) : 1;
    settings.expert_parallel = coin(rng);
    if (rng.index(3) == 0)
        settings.speculation = {std::array{"ngram", "eagle3", "draft_model"}[rng.index(3)],
                                whole(rng, 1, 8), 0};
    if (settings.speculation.method == "draft_model")
        settings.speculation.draft_bytes = between(rng, 1e8, 1e10);
    if (rng.index(5) == 0) settings.weight_offload_bytes = between(rng, 1e8, 1e10);
    return settings;
}

struct RandomCase {
    ServingTarget target;
    ServingSettings settings;
    StepWork work;
};

StepWork random_work(Rng& rng, const ModelSpec& model) {
    StepWork work;
    work.decode_sequences = std::int64_t(rng.index(600));
    work.decode_context_tokens =
        work.decode_sequences > 0 ? between(rng, 1, 1e5) * double(work.decode_sequences) : 0;
    const auto windowed = [&](double context, std::int64_t sequences) {
        return std::min(context, double(model.sliding_window * sequences));
    };
    work.decode_windowed_context_tokens =
        windowed(work.decode_context_tokens, work.decode_sequences);
    if (coin(rng) || work.decode_sequences == 0) {
        work.prefill_sequences = 1 + std::int64_t(rng.index(20));
        work.prefill_finished = std::int64_t(rng.index(std::size_t(work.prefill_sequences) + 1));
        work.prefill_tokens = work.prefill_sequences * whole(rng, 1, 4000);
        work.prefill_pairs = between(rng, 1, 1e4) * double(work.prefill_tokens);
        work.prefill_windowed_pairs = windowed(work.prefill_pairs, work.prefill_tokens);
        work.prefill_context_tokens = coin(rng) ? between(rng, 1, 1e6) : 0;
    }
    return work;
}

RandomCase random_case(Rng& rng) {
    RandomCase result{
        {random_model(rng), random_hardware(rng), random_traits(rng)}, random_settings(rng), {}};
    result.work = random_work(rng, result.target.model);
    return result;
}

StepWork times(StepWork work, std::int64_t n) {
    const auto f = double(n);
    return {work.decode_sequences * n,
            work.decode_context_tokens * f,
            work.decode_windowed_context_tokens * f,
            work.prefill_sequences * n,
            work.prefill_finished * n,
            work.prefill_tokens * n,
            work.prefill_pairs * f,
            work.prefill_windowed_pairs * f,
            work.prefill_context_tokens * f};
}

double seconds(const RandomCase& c) { return CostModel(c.target, c.settings).step(c.work).total; }
std::int64_t cache_tokens(const RandomCase& c) {
    return CostModel(c.target, c.settings).memory().cache_tokens;
}

constexpr double rounding = 1 - 1e-12;  ///< sums are not associative to the last bit
constexpr int many = 3000;

}  // namespace

TEST_CASE("cost model: random cases have finite times and plans that add up") {
    Rng rng(1);
    for (int i = 0; i < many; ++i) {
        const RandomCase c = random_case(rng);
        const CostModel cost(c.target, c.settings);
        const StepTime time = cost.step(c.work);
        for (const double part : {time.linear, time.attention, time.communication, time.draft,
                                  time.device, time.host, time.total})
            REQUIRE((std::isfinite(part) && part >= 0));
        REQUIRE(time.device >=
                (time.linear + time.attention + time.communication + time.draft) * rounding);
        REQUIRE(time.total ==
                (c.settings.overlap ? std::max(time.device, time.host) : time.device + time.host));
        const MemoryPlan& plan = cost.memory();
        REQUIRE(plan.free_bytes ==
                Approx(plan.device_bytes - plan.context_bytes - plan.weights_bytes -
                       plan.activation_bytes - plan.graph_bytes - plan.cache_bytes)
                    .margin(1));
        REQUIRE((plan.missing_bytes >= 0 && plan.cache_bytes >= 0 && plan.weights_bytes >= 0 &&
                 plan.graph_bytes >= 0));
        REQUIRE(plan.cache_tokens == plan.cache_blocks * c.settings.block_tokens);
        REQUIRE((plan.missing_bytes == 0 || plan.cache_blocks == 0));
        REQUIRE((std::isfinite(cost.start_seconds()) && cost.start_seconds() >= 0));
        REQUIRE(cost.tokens_per_step() >= 1);
        REQUIRE(cost.tokens_per_step() <= double(c.settings.speculation.tokens + 1));
    }
}

TEST_CASE("cost model: more memory and smaller keys never make a smaller cache") {
    Rng rng(2);
    for (int i = 0; i < many; ++i) {
        const RandomCase c = random_case(rng);
        const std::int64_t tokens = cache_tokens(c);
        RandomCase more = c;
        more.settings.memory_fraction += (1 - c.settings.memory_fraction) * rng.uniform();
        REQUIRE(cache_tokens(more) >= tokens);
        more = c;
        more.settings.cache_bits *= between(rng, 0.1, 1);
        REQUIRE(cache_tokens(more) >= tokens);
        more = c;
        more.target.hardware.memory_bytes *= between(rng, 1, 3);
        REQUIRE(cache_tokens(more) >= tokens);
        more = c;
        more.settings.max_sequences = std::max<std::int64_t>(1, c.settings.max_sequences / 2);
        more.settings.max_batched_tokens =
            std::max<std::int64_t>(1, c.settings.max_batched_tokens / 2);
        REQUIRE(cache_tokens(more) >= tokens);
    }
}

TEST_CASE("cost model: more work is never done sooner") {
    Rng rng(3);
    for (int i = 0; i < many; ++i) {
        const RandomCase c = random_case(rng);
        const double before = seconds(c) * rounding;
        RandomCase more = c;
        more.work.decode_context_tokens *= between(rng, 1, 10);
        REQUIRE(seconds(more) >= before);
        more.work.decode_windowed_context_tokens = more.work.decode_context_tokens;
        REQUIRE(seconds(more) >= before);
        more = c;
        more.work.prefill_pairs *= between(rng, 1, 10);
        more.work.prefill_context_tokens += between(rng, 1, 1e6);
        REQUIRE(seconds(more) >= before);
        more = c;
        if (c.work.prefill_sequences > 0) more.work.prefill_tokens += whole(rng, 1, 10'000);
        REQUIRE(seconds(more) >= before);
        more = c;
        more.work = times(c.work, 2 + std::int64_t(rng.index(5)));  // more of the same sequences
        REQUIRE(seconds(more) >= before);
        // there, sequences are taken to be alike: one short one more lowers their mean
        if (c.settings.pipeline_parallel > 1) continue;
        more = c;
        more.work.decode_sequences += whole(rng, 1, 100);
        REQUIRE(seconds(more) >= before);
        more = c;
        more.work.prefill_sequences += 1;
        more.work.prefill_finished += 1;
        REQUIRE(seconds(more) >= before);
    }
}

TEST_CASE("cost model: a better chip is never slower, a better engine neither") {
    Rng rng(4);
    for (int i = 0; i < many; ++i) {
        const RandomCase c = random_case(rng);
        const double before = seconds(c);
        const double factor = between(rng, 1, 10);
        RandomCase better = c;
        better.target.hardware.memory_bandwidth_bytes_per_second *= factor;
        REQUIRE(seconds(better) * rounding <= before);
        better = c;
        for (auto& [type, flops] : better.target.hardware.flops_per_second) flops *= factor;
        REQUIRE(seconds(better) * rounding <= before);
        better = c;
        *better.target.hardware.link_bytes_per_second *= factor;
        REQUIRE(seconds(better) * rounding <= before);
        better = c;
        better.target.traits.bandwidth_efficiency =
            better.target.traits.compute_efficiency["other"] = 1;
        better.target.traits.attention["some"] = {1, 1, {}, {}};
        better.target.traits.link_efficiency = 1;
        better.settings.compiled = better.settings.overlap = true;
        better.settings.graph_max_tokens = 1 << 20;
        REQUIRE(seconds(better) * rounding <= before);
    }
}

TEST_CASE("cost model: sharing a model among more devices never puts more weights on one") {
    Rng rng(5);
    for (int i = 0; i < many; ++i) {
        RandomCase c = random_case(rng);
        const double before = CostModel(c.target, c.settings).memory().weights_bytes;
        for (std::int64_t* count : {&c.settings.tensor_parallel, &c.settings.pipeline_parallel}) {
            *count *= 2;
            REQUIRE(CostModel(c.target, c.settings).memory().weights_bytes * rounding <= before);
            *count /= 2;
        }
        c.settings.expert_parallel = true;
        REQUIRE(CostModel(c.target, c.settings).memory().weights_bytes * rounding <= before);
    }
}

TEST_CASE(
    "cost model: a step reads of a mixture of experts what one token reads or more, and never more "
    "than all") {
    Rng rng(6);
    int mixtures = 0;
    for (int i = 0; i < many; ++i) {
        RandomCase c = random_case(rng);
        const ModelSpec& model = c.target.model;
        if (model.experts == 0) continue;
        ++mixtures;
        for (auto& [type, flops] : c.target.hardware.flops_per_second)
            flops = 1e40;  // so that a step only reads
        c.settings.tensor_parallel = c.settings.pipeline_parallel = c.settings.data_parallel = 1;
        c.settings.micro_batch_tokens = 0;
        c.settings.weight_offload_bytes = 0;
        c.settings.speculation = {};
        const CostModel cost(c.target, c.settings);
        const double bandwidth = c.target.hardware.memory_bandwidth_bytes_per_second *
                                 c.target.traits.bandwidth_efficiency;
        const ModelWeights& weights = model.weights.at("some");
        const auto read = [&](std::int64_t sequences) {
            return cost.step({.decode_sequences = sequences}).linear * bandwidth;
        };
        REQUIRE(read(1) == Approx(weights.per_token).epsilon(1e-9));
        double last = read(1);
        for (const std::int64_t sequences : {2, 8, 100, 10'000}) {
            const double bytes = read(sequences);
            REQUIRE(bytes >= last * rounding);
            REQUIRE(bytes <= std::max(weights.bytes, weights.per_token) * (1 + 1e-9));
            last = bytes;
        }
        const double embedding =
            model.tied_embeddings ? 0 : 2.0 * double(model.vocabulary * model.hidden_size);
        REQUIRE(read(1'000'000) ==
                Approx(std::max(weights.per_token, weights.bytes - embedding)).epsilon(1e-6));
    }
    CHECK(mixtures > 1000);
}

TEST_CASE("cost model: no step beats the roofline") {
    Rng rng(7);
    for (int i = 0; i < many; ++i) {
        const RandomCase c = random_case(rng);
        const StepTime time = CostModel(c.target, c.settings).step(c.work);
        const ModelSpec& model = c.target.model;
        const HardwareSpec& chip = c.target.hardware;
        const auto tensor = double(c.settings.tensor_parallel);
        const auto devices = double(c.settings.tensor_parallel * c.settings.pipeline_parallel);
        const auto tokens = double(c.work.decode_sequences + c.work.prefill_tokens);
        const double flops = 2 * (model.parameters_active - model.parameters_embedding) * tokens;
        const ModelWeights& weights = model.weights.at("some");
        REQUIRE(time.total >= flops / devices / *chip.flops(weights.computes_in) * rounding);
        // Experts that are spread over replicas are read by each for all: a replica's own device
        // reads fewer.
        const double replicas = c.settings.expert_parallel ? double(c.settings.data_parallel) : 1;
        REQUIRE(time.total >= weights.per_token / tensor / replicas /
                                  chip.memory_bandwidth_bytes_per_second * rounding);
        const auto sliding = double(model.sliding_layers) / double(model.attention_layers);
        const double context = c.work.decode_context_tokens * (1 - sliding) +
                               c.work.decode_windowed_context_tokens * sliding;
        const double bytes = context * model.kv_bytes_per_token_16bit * c.settings.cache_bits / 16;
        REQUIRE(time.total >= bytes / devices / chip.memory_bandwidth_bytes_per_second * rounding);
        REQUIRE(time.total >= c.target.traits.step_overhead_seconds);
    }
}
