// SPDX-License-Identifier: Apache-2.0
// What one ask of the Bayesian strategy costs: everything fitted anew after a result, and only one
// more trial under way.
#include "search/earlier_results.hpp"
#include "search/model_cache.hpp"
#include "servetune/bayesian.hpp"

#include <benchmark/benchmark.h>

#include <sys/resource.h>
#include <time.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace servetune;

/// Which space: the second argument of the benchmarks.
enum Size { hundred_thousand, million, trillion };

/// An engine's whole command line: 30 parameters, 2^40 configurations, which cannot be listed.
SearchSpace whole_command_line() {
    std::vector<Parameter> parameters{
        Parameter::integer("seqs", 128, 1024, Scale::log2).with_default(256),
        Parameter::integer("tokens", 4096, 32768, Scale::log2).with_default(8192)};
    for (int i = 0; i < 4; ++i)
        parameters.push_back(
            Parameter::choice("fraction" + std::to_string(i), {0.7, 0.8, 0.9, 0.95}, true));
    for (int i = 0; i < 4; ++i)
        parameters.push_back(
            Parameter::choice("backend" + std::to_string(i), {"a", "b", "c", "d"}));
    for (int i = 0; i < 20; ++i)
        parameters.push_back(Parameter::choice("switch" + std::to_string(i), {false, true}));
    return SearchSpace(std::move(parameters));
}

/// Parameters like an engine's: 103 680 configurations, or with more levels 967 680.
SearchSpace space(Size size) {
    if (size == trillion) return whole_command_line();
    const bool larger = size == million;
    std::vector<Parameter> parameters{
        Parameter::integer("seqs", 32, larger ? 2048 : 1024, Scale::log2).with_default(256),
        Parameter::integer("tokens", 1024, larger ? 131072 : 32768, Scale::log2).with_default(8192),
        Parameter::choice("memory", {0.7, 0.8, 0.85, 0.9, 0.95}, true),
        Parameter::choice("backend", {"fa3", "flashinfer", "triton"}),
        Parameter::choice("cache", {"auto", "fp8"}),
        Parameter::choice("mode", {"a", "b"}),
        Parameter::choice("graph", {false, true}),
        Parameter::choice("overlap", {false, true}),
        Parameter::choice("pinned", {false, true}),
        Parameter::choice("method", {"none", "ngram"}),
        Parameter::integer("guesses", 1, larger ? 8 : 5).when("method", {"ngram"})};
    if (larger)
        parameters.push_back(Parameter::choice("order", {"fcfs", "priority", "lpm", "dfs"}));
    return SearchSpace(std::move(parameters));
}

double number(const Configuration& configuration, const char* name) {
    const Value* value = configuration.find(name);
    return value == nullptr ? 0 : number_of(*value).value_or(0);
}

std::vector<Trial> history_of(const Problem& problem, std::size_t trials) {
    Rng rng(7);
    std::vector<Trial> history;
    for (std::size_t i = 0; i < trials; ++i) {
        Configuration configuration =
            i == 0 ? problem.space.default_configuration() : problem.feasible.sample(rng);
        const double seqs = std::log2(number(configuration, "seqs"));
        const double tokens = std::log2(number(configuration, "tokens"));
        Trial trial{i, std::move(configuration)};
        if (seqs + tokens > 23) trial.outcome = Failure{FailureKind::out_of_memory, "no room"};
        else
            trial.outcome = Measurement{
                {{"total_tokens_per_second",
                  {5000 * std::exp(-0.04 * (seqs - 9) * (seqs - 9) -
                                   0.03 * (tokens - 13) * (tokens - 13) + 0.03 * rng.normal())}}}};
        history.push_back(std::move(trial));
    }
    return history;
}

/// `state.range(0)`: trials told; `state.range(1)`: the `Size`.
struct Study {
    /// `earlier`: trials of each earlier study that it knows.
    explicit Study(const benchmark::State& state, const std::vector<std::size_t>& earlier = {})
        : problem(space(static_cast<Size>(state.range(1))), {},
                  {Decision::Rule::significant, 0.01, 0.03}),
          history(history_of(problem, std::size_t(state.range(0)))),
          strategy(options(problem, earlier)) {}
    static Bayesian::Options options(const Problem& problem,
                                     const std::vector<std::size_t>& earlier) {
        Bayesian::Options options;
        options.trials = 1'000'000;  // never the confirming end
        std::vector<std::shared_ptr<const PriorMean>> sources;
        for (const std::size_t trials : earlier)
            sources.push_back(std::make_shared<EarlierResults>(
                "an earlier study", history_of(problem, trials),
                std::map<std::string, std::string>{}, problem.objective, problem.decision,
                problem.space));
        options.beliefs = Beliefs(std::move(sources));
        return options;
    }
    Problem problem;
    std::vector<Trial> history;
    Bayesian strategy;
};

/// The most memory that this process ever had, in MB: of one benchmark where it runs alone.
double peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return double(usage.ru_maxrss) * 1024 / 1e6;
}

void ask(benchmark::State& state, const std::vector<std::size_t>& earlier) {
    Study study(state, earlier);
    Rng rng(1);
    benchmark::DoNotOptimize(study.strategy.ask(study.problem, study.history,
                                                rng));  // lists the candidates, once for a study
    for (auto _ : state) {
        study.history.back().outcome =
            Measurement{{{"total_tokens_per_second", {5000 * std::exp(0.03 * rng.normal())}}}};
        benchmark::DoNotOptimize(study.strategy.ask(study.problem, study.history, rng));
    }
    state.counters["configurations"] = study.problem.feasible.size();
    state.counters["peak_MB"] = peak_megabytes();
}

void ask_after_a_result(benchmark::State& state) { ask(state, {}); }

/// With two earlier studies and a table of measurements.
void ask_with_knowledge(benchmark::State& state) { ask(state, {60, 200, 1500}); }

/// CPU time of this thread, in milliseconds.
double processor_milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) * 1e3 + double(now.tv_nsec) * 1e-6;
}

/// The same ask many times, each after another result: counters p50_ms and p99_ms.
void many_asks_after_a_result(benchmark::State& state) {
    Study study(state);
    Rng rng(1);
    benchmark::DoNotOptimize(study.strategy.ask(study.problem, study.history, rng));
    std::vector<double> times;
    for (auto _ : state) {
        study.history.back().outcome =
            Measurement{{{"total_tokens_per_second", {5000 * std::exp(0.03 * rng.normal())}}}};
        const double from = processor_milliseconds();
        benchmark::DoNotOptimize(study.strategy.ask(study.problem, study.history, rng));
        times.push_back(processor_milliseconds() - from);
    }
    sort(times);
    const auto at = [&](double share) {
        return times[std::size_t(share * double(times.size() - 1))];
    };
    state.counters["p50_ms"] = at(0.5);
    state.counters["p99_ms"] = at(0.99);
    state.counters["configurations"] = study.problem.feasible.size();
}

void ask_with_one_more_under_way(benchmark::State& state) {
    Study study(state);
    Rng rng(1);
    for (auto _ : state) {
        state.PauseTiming();
        const Answer answer = study.strategy.ask(study.problem, study.history, rng);
        study.history.push_back({study.history.size(), std::get<Proposal>(answer).configuration});
        state.ResumeTiming();
        benchmark::DoNotOptimize(study.strategy.ask(study.problem, study.history, rng));
        state.PauseTiming();
        study.history.pop_back();
        state.ResumeTiming();
    }
    state.counters["configurations"] = study.problem.feasible.size();
}

void listing_the_candidates(benchmark::State& state) {
    Study study(state);
    for (auto _ : state)
        benchmark::DoNotOptimize(std::make_unique<Candidates>(study.problem, Beliefs{}));
    state.counters["configurations"] = study.problem.feasible.size();
}

BENCHMARK(listing_the_candidates)->Args({0, 0})->Args({0, 1})->Unit(benchmark::kMillisecond);
BENCHMARK(ask_after_a_result)
    ->Args({20, 0})
    ->Args({60, 0})
    ->Args({60, 1})
    ->Args({300, 0})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ask_after_a_result)
    ->Args({1000, 0})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);  // minutes
BENCHMARK(ask_after_a_result)->Args({60, trillion})->Unit(benchmark::kMillisecond);
BENCHMARK(ask_with_knowledge)->Args({60, trillion})->Unit(benchmark::kMillisecond);
BENCHMARK(ask_after_a_result)
    ->Args({10'000, 0})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);  // a person's history
BENCHMARK(many_asks_after_a_result)->Args({50, 0})->Iterations(200)->Unit(benchmark::kMillisecond);
BENCHMARK(ask_with_one_more_under_way)->Args({60, 0})->Args({60, 1})->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
