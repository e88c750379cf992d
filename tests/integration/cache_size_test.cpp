// SPDX-License-Identifier: Apache-2.0
// The size of an engine's cache, which one start finds and later ones are told: what a log tells,
// which configurations share it, and whole studies with simengine in the part of vLLM.
#include "deploy/engine_log.hpp"

#include "base/files.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include <optional>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr const char* size_flag = "--kv-cache-memory-bytes";

Engine catalogue_vllm() { return Catalogue::standard().engine(std::string("vllm")); }

std::optional<std::string> size_key_with(const Assignment& values,
                                         SpaceDescription description = {}) {
    description.engines = {catalogue_vllm()};
    const Composition composition(std::move(description));
    const SearchSpace space(composition.parameters(), composition.constraints());
    return composition.cache_size_key(space.completed(values));
}

/// Only `names` are in the space.
SpaceDescription only_searched(const std::vector<std::string>& names) {
    SpaceDescription description;
    for (const std::string& name : names) description.entries.push_back({name});
    description.others_searched = false;
    return description;
}

/// Two sizes of the cache, each found by the first of two configurations: the last two are told.
DeployedStudy::Text four_configurations() {
    DeployedStudy::Text text;
    text.space =
        "{max_num_seqs: {choice: [4, 32], default: 4}, enable_prefix_caching: {choice: [false, "
        "engine], default: engine}}";
    return text;
}

std::optional<double> figure_or_none(const Trial& trial, const std::string& name) {
    const Metrics& metrics = trial.measurement()->metrics;
    const auto found = metrics.find(name);
    return found == metrics.end() ? std::nullopt : std::optional(found->second.value);
}

std::vector<std::string> engines_with_words(const DeployedStudy& study, const std::string& words) {
    std::vector<std::string> result;
    for (const auto& engine : study.engines())
        if (has(engine.words, words)) result.push_back(engine.words);
    return result;
}

}  // namespace

TEST_CASE("cache size: a log tells the smallest, unless it is of that start alone") {
    const CacheSize size = *catalogue_vllm().cache_size;
    const auto bytes = [&](const std::string& log) { return cache_bytes_in(log, size); };
    constexpr double gib = 1UL << 30U;
    // Lines of vLLM 0.32 on an H100 and of two copies.
    CHECK(bytes("(EngineCore pid=7) INFO 11-26 09:00:00 [gpu_worker.py:759] Available KV cache "
                "memory: 51.37 GiB\nINFO GPU KV cache size: 374,048 tokens\n") ==
          std::int64_t(51.37 * gib));
    CHECK(bytes("Available KV cache memory: 8.5 GiB\nAvailable KV cache memory: 8.25 GiB\n") ==
          std::int64_t(8.25 * gib));
    CHECK_FALSE(bytes("INFO GPU KV cache size: 374,048 tokens\n"));
    CHECK_FALSE(bytes("Available KV cache memory: -0.31 GiB\n"));
    CHECK_FALSE(bytes("Available KV cache memory: "));
    // What the compiler used meanwhile was not free for the cache (vllm-project/vllm#54122).
    CHECK_FALSE(
        bytes("INFO Compiling a graph for compile range (1, 8192) takes 21.20 s\n"
              "Available KV cache memory: 45.1 GiB\n"));
    CHECK_FALSE(bytes("Available KV cache memory: 45.1 GiB\nsaved AOT compiled function to /c\n"));
}

TEST_CASE("cache size: configurations share it where only what leaves the memory alone differs") {
    CHECK_FALSE(size_key_with({}));  // kv_cache_memory_bytes is searched
    const std::vector<std::string> names{"max_num_seqs",          "max_num_batched_tokens",
                                         "enable_prefix_caching", "scheduling_policy",
                                         "stream_interval",       "tensor_parallel_size",
                                         "kv_cache_dtype",        "gpu_memory_utilization",
                                         "async_scheduling",      "block_size"};
    const auto key = [&](const Assignment& values) {
        return size_key_with(values, only_searched(names));
    };
    REQUIRE(key({}));
    CHECK(key({{"enable_prefix_caching", false}}) == key({}));
    CHECK(key({{"scheduling_policy", "priority"}, {"stream_interval", 4}}) == key({}));
    for (const Assignment& values : std::vector<Assignment>{{{"max_num_seqs", 64}},
                                                            {{"max_num_batched_tokens", 4096}},
                                                            {{"kv_cache_dtype", "fp8"}},
                                                            {{"gpu_memory_utilization", 0.8}},
                                                            {{"async_scheduling", true}},
                                                            {{"block_size", 32}}}) {
        INFO(Configuration::of(values).text());
        REQUIRE(key(values));
        CHECK(key(values) != key({}));
    }
    CHECK_FALSE(key({{"tensor_parallel_size", 2}}));  // the log tells the first GPU's alone
}

TEST_CASE("cache size: nothing is told where the study says the size, or to an older engine") {
    CHECK(size_key_with({}, only_searched({"max_num_seqs"})));
    CHECK_FALSE(size_key_with({}, only_searched({"max_num_seqs", "kv_cache_memory_bytes"})));
    for (const std::string& words :
         {std::string(size_flag) + "=8G", std::string("--kv-cache-memory")}) {
        SpaceDescription description = only_searched({"max_num_seqs"});
        description.arguments = {{"vllm", {words, "8589934592"}}};
        if (has(words, "=")) description.arguments["vllm"].pop_back();
        INFO(words);
        CHECK_FALSE(size_key_with({}, description));
    }
    for (const auto& [version, told] :
         std::vector<std::pair<std::string, bool>>{{"0.24.0", false}, {"0.26.0", true}}) {
        SpaceDescription description = only_searched({"max_num_seqs"});
        description.versions = {{"vllm", version}};
        INFO(version);
        CHECK(size_key_with({}, description).has_value() == told);
    }
}

TEST_CASE("cache size: a study tells it to what looks, and the report says how many were told") {
    const DeployedStudy study(four_configurations());
    const Ran ran = study.run_well();
    CHECK(has(ran.out, "--max-num-seqs=32"));
    const std::vector<Trial> trials = study.trials();
    const auto engines = study.engines();
    REQUIRE(trials.size() >= 4);  // the fifth confirms what was never measured cold, where that won
    REQUIRE(engines.size() == trials.size());
    const std::vector<bool> told{false, false, true, true};
    for (std::size_t i = 0; i < 4; ++i) {
        INFO(engines[i].words);
        REQUIRE(trials[i].measurement() != nullptr);
        CHECK((figure_or_none(trials[i], "cache_size_reused") == 1) == told[i]);
        CHECK(has(engines[i].words, size_flag) == told[i]);
        CHECK(figure_or_none(trials[i], "ready_seconds") ==
              figure_or_none(trials[i], "trial_start_seconds"));
    }
    for (const std::size_t first : {0U, 1U}) {
        const fs::path log = study.directory() / "trials" / std::to_string(first) / "engine.log";
        const auto size = cache_bytes_in(read_file(log), *catalogue_vllm().cache_size);
        REQUIRE(size);
        CHECK(engines[first + 2].words.ends_with(size_flag + (" " + std::to_string(*size))));
    }
    CHECK(has(read_file(study.directory() / "report.md"),
              "(2 of them told the size of their cache by an earlier one)"));
    CHECK(study.left().empty());
}

TEST_CASE("cache size: what was only measured with it is confirmed from one cold start") {
    DeployedStudy::Text text;
    text.space = "{enable_prefix_caching: {choice: [false, true], default: false}}";
    text.workload =
        "{kind: shared_prefix, input_tokens: 64, prefix_tokens: 3000, prefix_groups: 1, "
        "output_tokens: 8}, requests: 32, arrival: {rate: inf}";
    text.clock = "--start-scale 1000 --time-scale 4";
    const DeployedStudy study(text);
    const Ran ran = study.run_well();
    CHECK(has(ran.out, "\n  vllm serve Qwen/Qwen3-8B --enable-prefix-caching\n"));
    CHECK_FALSE(has(ran.out, size_flag));
    const std::vector<Trial> trials = study.trials();
    const auto engines = study.engines();
    REQUIRE(trials.size() == 3);
    REQUIRE(engines.size() == 3);
    CHECK(figure_or_none(trials[1], "cache_size_reused") == 1);
    CHECK(trials[2].configuration == trials[1].configuration);
    CHECK(trials[2].why == "confirmed from a cold start");
    CHECK_FALSE(has(engines[2].words, size_flag));
}

TEST_CASE("cache size: what fails with it is measured without it, and it is told no more") {
    const DeployedStudy study(four_configurations());
    study.set_faults({{"", "told_size_fails"}});
    const Ran ran = study.run_well();
    CHECK(has(ran.out, "--max-num-seqs=32"));
    for (const Trial& trial : study.trials()) {
        REQUIRE(trial.measurement() != nullptr);
        CHECK_FALSE(figure_or_none(trial, "cache_size_reused"));
    }
    CHECK(engines_with_words(study, size_flag).size() == 1);
    CHECK(study.engines().size() == study.trials().size() + 1);
    CHECK(fs::exists(study.directory() / "trials/2/engine-warm-start.log"));
    CHECK(has(ran.err, "once more from a cold start"));
}

TEST_CASE("cache size: a failure of the configuration is its own after a cold start, too") {
    const DeployedStudy study(four_configurations());
    study.set_faults({{"--no-enable-prefix-caching", "exit_at_load=1"}});
    (void)study.run_well();
    const std::vector<Trial> trials = study.trials();
    REQUIRE(trials.size() == 4);
    CHECK(trials[2].failure() != nullptr);
    CHECK(trials[3].failure() != nullptr);
    CHECK(engines_with_words(study, size_flag).size() == 2);  // the size was not at fault
    CHECK(study.engines().size() == 6);
}

TEST_CASE("ready seconds: a limit refuses slow starts, and no start is told a size") {
    DeployedStudy::Text text = four_configurations();
    text.objective = "{maximize: total_tokens_per_second, limits: [\"ready_seconds <= 5s\"]}";
    text.deploy = "ready_within: 30s, stop_within: 1s, trial_within: 20s, warm_up: 1";
    const DeployedStudy study(text);
    study.set_faults({{"--max-num-seqs=32", "slow_start=6"}});
    const Ran ran = study.run();
    INFO(ran.out << ran.err);
    CHECK_FALSE(has(ran.out, "--max-num-seqs=32"));
    CHECK(has(ran.err, "refused: limit ready_seconds <= 5s broken: "));
    CHECK(engines_with_words(study, size_flag).empty());
    for (const Trial& trial : study.trials()) {
        const bool slow = trial.configuration.integer("max_num_seqs") == 32;
        CHECK((figure_or_none(trial, "ready_seconds").value_or(0) > 5) == slow);
    }
}

TEST_CASE("ready seconds: as the goal the quickest start wins") {
    DeployedStudy::Text text;
    text.objective = "{minimize: ready_seconds}";
    text.deploy = "ready_within: 30s, stop_within: 1s, trial_within: 20s, warm_up: 1";
    const DeployedStudy study(text);
    study.set_faults({{"--max-num-seqs=3", "slow_start=4"}, {"--max-num-seqs=4", "slow_start=4"}});
    const Ran ran = study.run_well();
    CHECK(has(ran.out, best_command));
}

TEST_CASE("ready seconds: of a server that serves on for another load, its start's") {
    DeployedStudy::Text text;
    text.space = "{max_num_seqs: {choice: [4, 32], default: 4}, load.concurrency: [2, 8]}";
    text.workload = "{kind: random, input_tokens: 64, output_tokens: 32}, requests: 16";
    const DeployedStudy study(text);
    const Ran ran = study.run_well();
    bool served_on = false;
    for (const Trial& trial : study.trials()) {
        CHECK(figure_or_none(trial, "ready_seconds").value_or(0) > 0);
        served_on = served_on || figure_or_none(trial, "trial_start_seconds") == 0;
    }
    CHECK(served_on);
}
