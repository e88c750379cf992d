// SPDX-License-Identifier: Apache-2.0
// Timings of the library's own work: counting, listing, drawing and stepping through spaces, and
// durable journal events. What they were on one machine is in benchmarks/README.md;
// compare ratios, not seconds.
#include "servetune/catalogue.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/search_space.hpp"
#include "servetune/sqlite_journal.hpp"

#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

using namespace servetune;

namespace {

/// 12 parameters of 10 levels, each at least the one before: a product of 1e12, 293 930 feasible.
SearchSpace chain() {
    std::vector<Parameter> parameters;
    std::vector<Constraint> constraints;
    for (int i = 0; i < 12; ++i) {
        parameters.push_back(Parameter::integer("p" + std::to_string(i), 1, 10));
        if (i > 0)
            constraints.push_back(
                require("p" + std::to_string(i) + " >= p" + std::to_string(i - 1)));
    }
    return SearchSpace(std::move(parameters), std::move(constraints));
}

SearchSpace engine_space(const char* name) {
    const Composition composition(
        {{Catalogue(std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces").engine(name)}});
    return SearchSpace(composition.parameters(), composition.constraints());
}

void count_chain(benchmark::State& state) {
    const SearchSpace space = chain();
    for (auto _ : state) benchmark::DoNotOptimize(FeasibleSet(space).size());
}
BENCHMARK(count_chain)->Unit(benchmark::kMillisecond);

void list_chain(benchmark::State& state) {
    const SearchSpace space = chain();
    const FeasibleSet feasible(space);
    for (auto _ : state) {
        double n = 0;
        feasible.for_each([&](const Configuration&) { return ++n > 0; });
        benchmark::DoNotOptimize(n);
    }
    state.SetItemsProcessed(state.iterations() * 293930);
}
BENCHMARK(list_chain)->Unit(benchmark::kMillisecond);

void draw_from_chain(benchmark::State& state) {
    const SearchSpace space = chain();
    const FeasibleSet feasible(space);
    Rng rng(1);
    for (auto _ : state) benchmark::DoNotOptimize(feasible.sample(rng));
}
BENCHMARK(draw_from_chain)->Unit(benchmark::kMicrosecond);

/// A table of measured rows that excludes everything else: twice the rows may cost little more than
/// twice the time.
void count_rows(benchmark::State& state) {
    std::vector<Parameter> parameters;
    for (const char* name : {"a", "b", "c", "d", "e"})
        parameters.push_back(Parameter::integer(name, 1, 10));
    Allow allow{{"a", "b", "c", "d", "e"}, {}, "measured"};
    for (std::int64_t i = 0; i < state.range(0); ++i) {
        Allow::Row row;
        for (std::int64_t k = 0, rest = i * 7919 % 100'000; k < 5; ++k, rest /= 10)
            row.emplace_back(Value(rest % 10 + 1));
        allow.rows.insert(std::move(row));
    }
    const SearchSpace space(std::move(parameters), {allow});
    for (auto _ : state) benchmark::DoNotOptimize(FeasibleSet(space).size());
    state.SetComplexityN(state.range(0));
}
BENCHMARK(count_rows)
    ->Arg(25'000)
    ->Arg(50'000)
    ->Arg(100'000)
    ->Complexity()
    ->Unit(benchmark::kMillisecond);

void count_engine(benchmark::State& state, const char* name) {
    const SearchSpace space = engine_space(name);
    for (auto _ : state) benchmark::DoNotOptimize(FeasibleSet(space).size());
    state.counters["parameters"] = double(space.parameters().size());
    state.counters["states"] = double(FeasibleSet(space).states());
}
BENCHMARK_CAPTURE(count_engine, vllm, "vllm")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(count_engine, sglang, "sglang")->Unit(benchmark::kMillisecond);

void draw_from_engine(benchmark::State& state, const char* name) {
    const SearchSpace space = engine_space(name);
    const FeasibleSet feasible(space);
    Rng rng(1);
    for (auto _ : state) benchmark::DoNotOptimize(feasible.sample(rng));
}
BENCHMARK_CAPTURE(draw_from_engine, vllm, "vllm")->Unit(benchmark::kMicrosecond);

void step_in_engine(benchmark::State& state, const char* name) {
    const SearchSpace space = engine_space(name);
    const Configuration at = space.default_configuration();
    std::size_t found = 0;
    for (auto _ : state) found = neighbours(space, at).size();
    state.counters["neighbours"] = double(found);
}
BENCHMARK_CAPTURE(step_in_engine, vllm, "vllm")->Unit(benchmark::kMillisecond);

void journal_events(benchmark::State& state) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / "servetune-journal-benchmark";
    std::filesystem::remove_all(folder);
    SqliteJournal journal = SqliteJournal::open(folder, {"benchmark", {}, "0"});
    std::uint64_t id = 0;
    for (auto _ : state) {
        journal.asked({id, Configuration({{"max_num_seqs", std::int64_t(id)}})});
        journal.started(id, 0);
        journal.told(id++, Measurement{{{"total_tokens_per_second", {1.0}}}}, 1);
    }
    state.SetItemsProcessed(state.iterations() * 3);
    std::filesystem::remove_all(folder);
}
BENCHMARK(journal_events)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
