// SPDX-License-Identifier: Apache-2.0
// What a simulated load test costs: the records of 1000 requests as long as ShareGPT's, all at once
// and in a closed loop, and their statistics. What they were on one machine is in
// benchmarks/README.md; compare ratios, not seconds.
#include "servetune/detail/load/statistics.hpp"
#include "servetune/detail/perf/simulator.hpp"

#include <benchmark/benchmark.h>

#include <cmath>

using namespace servetune;

namespace {

/// Of the size of a dense model of 14 billion parameters on an H100; how near an engine comes to
/// the chip's peaks is no part of what is timed here.
ServingTarget target() {
    ServingTarget target;
    target.model = {
        .name = "dense-14b", .parameters_active = 14.8e9, .parameters_embedding = 1.56e9};
    target.model.layers = target.model.attention_layers = 40;
    target.model.hidden_size = 5120;
    target.model.attention_heads = 40;
    target.model.kv_heads = 8;
    target.model.head_dim = 128;
    target.model.vocabulary = 151'936;
    target.model.context_tokens = 40'960;
    target.model.kv_bytes_per_token_16bit = 163'840;
    target.model.native_type = "bf16";
    target.model.weights["bf16"] = {.bytes = 29.6e9, .per_token = 28e9, .computes_in = "bf16"};
    target.hardware.name = "80-gb-chip";
    target.hardware.memory_bytes = 80e9;
    target.hardware.memory_bandwidth_bytes_per_second = 3.35e12;
    target.hardware.flops_per_second["bf16"] = 989e12;
    target.traits.engine = "some";
    target.traits.compute_efficiency["other"] = 0.7;
    target.traits.bandwidth_efficiency = 0.8;
    target.traits.step_overhead_seconds = 0.001;
    target.traits.sequence_overhead_seconds = 1e-6;
    target.traits.request_overhead_seconds = 0.0005;
    target.traits.chunk_overhead_seconds = 20e-6;
    target.traits.default_attention = "some";
    target.traits.attention["some"] = {.prefill_efficiency = 0.5, .decode_efficiency = 0.7};
    target.traits.acceptance["eagle3"] = 0.7;
    target.traits.context_bytes = 1e9;
    target.traits.activation_bytes_per_token_and_width = 20;
    return target;
}

ServingSettings settings() {
    ServingSettings settings;
    settings.quantization = "bf16";
    settings.max_sequences = 256;
    return settings;
}

/// 217 tokens in and 202 out on average, lognormal as conversations are.
SimulatedTraffic traffic(Arrival arrival) {
    Rng rng(1);
    const auto length = [&](double mean, double deviation) {
        return 4 + static_cast<std::int64_t>(
                       (mean - 4) * std::exp(deviation * rng.normal() - deviation * deviation / 2));
    };
    std::vector<SimulatedTraffic::Request> requests(1000);
    for (SimulatedTraffic::Request& request : requests)
        request = {.input_tokens = length(217, 0.9), .output_tokens = length(202, 0.8)};
    return SimulatedTraffic(std::move(requests), arrival);
}

/// What is timed: the records alone, as a study or a fit asks for them ten thousand times.
void simulate_under(benchmark::State& state, const ServingSettings& settings, Arrival arrival,
                    const StepNoise& noise = {}) {
    const CostModel cost(target(), settings);
    const SimulatedTraffic sent = traffic(arrival);
    double tokens = 0;
    double steps = 0;
    double preemptions = 0;
    for (auto _ : state) {
        const SimulatedRun run = simulate(cost, sent, {.seed = 1, .noise = noise});
        tokens = static_cast<double>(run.engine.generated_tokens);
        steps = static_cast<double>(run.engine.steps);
        preemptions = static_cast<double>(run.engine.preemptions);
        benchmark::DoNotOptimize(run.records.data());
    }
    state.counters["tokens"] = tokens;
    state.counters["steps"] = steps;
    state.counters["preemptions"] = preemptions;
    state.counters["tokens/s"] =
        benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
}

constexpr StepNoise some_noise{.run_cv = 0.01, .step_cv = 0.02, .drift_cv = 0.005};

void records_all_at_once(benchmark::State& state) { simulate_under(state, settings(), {}); }
BENCHMARK(records_all_at_once)->Unit(benchmark::kMillisecond);

void records_with_noise(benchmark::State& state) {
    simulate_under(state, settings(), {}, some_noise);
}
BENCHMARK(records_with_noise)->Unit(benchmark::kMillisecond);

void records_closed_loop(benchmark::State& state) {
    simulate_under(state, settings(), {.kind = Arrival::Kind::concurrency, .in_flight = 64});
}
BENCHMARK(records_closed_loop)->Unit(benchmark::kMillisecond);

void records_one_at_a_time(benchmark::State& state) {
    simulate_under(state, settings(), {.kind = Arrival::Kind::concurrency, .in_flight = 1});
}
BENCHMARK(records_one_at_a_time)->Unit(benchmark::kMillisecond);

void records_with_speculation(benchmark::State& state) {
    ServingSettings speculating = settings();
    speculating.speculation = {.method = "eagle3", .tokens = 3};
    simulate_under(state, speculating, {});
}
BENCHMARK(records_with_speculation)->Unit(benchmark::kMillisecond);

void records_small_cache(benchmark::State& state) {
    ServingSettings small = settings();
    small.cache_tokens = 32'000;  // room for 80 requests: preemptions all along
    simulate_under(state, small, {});
}
BENCHMARK(records_small_cache)->Unit(benchmark::kMillisecond);

void statistics_of_records(benchmark::State& state) {
    const SimulatedTraffic sent = traffic({});
    const SimulatedRun run = simulate(CostModel(target(), settings()), sent);
    const LoadRun load{.records = run.records, .duration_seconds = run.duration_seconds};
    for (auto _ : state)
        benchmark::DoNotOptimize(statistics_of(load, {.requests = load.records.size()}));
}
BENCHMARK(statistics_of_records)->Unit(benchmark::kMillisecond);

}  // namespace
