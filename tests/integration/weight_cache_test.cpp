// SPDX-License-Identifier: Apache-2.0
// Weights that stay in the devices' memory between trials: the daemons alone, and whole studies
// with simengine in the part of vLLM and of its daemon.
#include "deploy/weight_cache.hpp"
#include "deploy/cached_models.hpp"

#include "base/files.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "support/deployed_study.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

constexpr const char* from_the_cache = "--load-format ipc_cache";

/// Where Hugging Face's hub would keep Qwen3-8B.
struct HubFolder {
    HubFolder() {
        fs::create_directories(model() / "blobs");
        folder.write("hub/models--Qwen--Qwen3-8B/blobs/weights", "one");
    }
    [[nodiscard]] fs::path model() const { return folder.path() / "hub/models--Qwen--Qwen3-8B"; }
    [[nodiscard]] std::vector<std::string> as_home() const {
        return {"/usr/bin/env", "HF_HOME=" + folder.path().string()};
    }
    TemporaryFolder folder{};
};

Composition vllm_composition() {
    std::vector<Engine> engines = Catalogue::standard().engines();
    std::erase_if(engines, [](const Engine& engine) { return engine.name != "vllm"; });
    return Composition({.engines = std::move(engines)});
}

Configuration with_values(const Composition& composition, const Assignment& values) {
    const SearchSpace space(composition.parameters(), composition.constraints());
    return space.completed(values);
}

/// `vllm` is a script that notes its words; a file `broken` beside it lets daemons end at once.
struct DaemonWorld {
    DaemonWorld() {
        fs::create_directories(folder.path() / "bin");
        const std::string here = folder.path().string();
        const fs::path script = folder.write(
            "bin/vllm", "#!/bin/sh\necho \"$$ $CUDA_VISIBLE_DEVICES $*\" >> '" + here +
                            "/started'\n[ ! -e '" + here +
                            "/broken' ] || exit 7\nexec '" SIMENGINE_PROGRAM "' vllm \"$@\"\n");
        fs::permissions(script, fs::perms::owner_all);
        Composition found = vllm_composition();
        composition = std::make_unique<Composition>(std::move(found));
        WeightCache::Options options;
        options.environment = {{"HF_HOME", hub.folder.path().string()},
                               {"SIMENGINE_OPTIONS", "--start-scale 1000"}};
        options.folder = folder.path() / "weight-cache";
        options.mark = here;
        options.stop_within_seconds = 5;
        cache = std::make_unique<WeightCache>(options);
        const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
        old_path = path;
        (void)setenv("PATH", (here + "/bin:" + old_path).c_str(),
                     1);  // NOLINT(concurrency-mt-unsafe)
    }
    ~DaemonWorld() { (void)setenv("PATH", old_path.c_str(), 1); }  // NOLINT(concurrency-mt-unsafe)

    [[nodiscard]] std::optional<WeightCacheCommands> hold(
        const Assignment& values, const std::vector<std::string>& gpus = {""},
        const std::stop_token& stop = {}) const {
        return cache->hold(*composition, with_values(*composition, values), "Qwen/Qwen3-8B", gpus,
                           stop);
    }
    /// A line for each daemon that was started.
    [[nodiscard]] std::vector<std::string> started() const {
        std::ifstream stream(folder.path() / "started");
        std::vector<std::string> lines;
        for (std::string line; std::getline(stream, line);) lines.push_back(line);
        return lines;
    }
    [[nodiscard]] int id(std::size_t number) const {
        return std::atoi(started().at(number).c_str());
    }

    TemporaryFolder folder{};
    HubFolder hub{};
    std::unique_ptr<Composition> composition{};
    std::unique_ptr<WeightCache> cache{};
    std::string old_path{};
};

}  // namespace

TEST_CASE(
    "weight cache: a daemon serves all configurations with its weights, and another starts for "
    "other weights") {
    const DaemonWorld world;
    const auto first = world.hold({});
    REQUIRE(first);
    CHECK(has(world.started().at(0), "preload --model Qwen/Qwen3-8B --weight-cache-socket-dir "));
    CHECK(first->engine_adds.at(0) == "--load-format");
    CHECK(has(first->engine_adds.at(3), "\"fallback\":false"));
    CHECK(fs::exists(world.folder.path() / "weight-cache/1.log"));
    CHECK(world.hold({{"max_num_seqs", 512}, {"enable_prefix_caching", false}}));
    CHECK(world.started().size() == 1);

    REQUIRE(world.hold({{"quantization", "fp8"}}));
    REQUIRE(world.started().size() == 2);
    CHECK(has(world.started().at(1), "--quantization=fp8"));
    CHECK_FALSE(alive(world.id(0)));
    CHECK(alive(world.id(1)));

    world.cache->release();
    CHECK_FALSE(alive(world.id(1)));
}

TEST_CASE(
    "weight cache: the daemon gets those of the study's arguments that it takes, and no key") {
    std::vector<Engine> engines = Catalogue::standard().engines();
    std::erase_if(engines, [](const Engine& engine) { return engine.name != "vllm"; });
    const Composition composition(
        {.engines = std::move(engines),
         .arguments = {{"vllm",
                        {"--api-key", "secret", "--trust-remote-code", "--revision", "v2",
                         "--dtype=half", "--chat-template", "x"}}}});
    const WeightCacheCommands commands =
        composition.render_weight_cache(with_values(composition, {}), "m", "/f");
    CHECK(commands.daemon.text() ==
          "vllm preload --model m --weight-cache-socket-dir /f --trust-remote-code --revision v2 "
          "--dtype=half");
}

TEST_CASE("weight cache: a checkpoint that is replaced under its name is loaded anew") {
    const DaemonWorld world;
    REQUIRE(world.hold({}));
    const fs::path file = world.hub.model() / "blobs/weights";
    const auto written = fs::last_write_time(file);
    std::ofstream(file) << "two";  // as long as before, and with the time of before
    fs::last_write_time(file, written);
    REQUIRE(world.hold({}));
    CHECK(world.started().size() == 2);
    CHECK_FALSE(alive(world.id(0)));
    REQUIRE(world.hold({}));
    CHECK(world.started().size() == 2);
}

TEST_CASE("weight cache: what cannot be held is loaded by the engine, with the devices to itself") {
    const DaemonWorld world;
    REQUIRE(world.hold({}));
    for (const auto& [values, why] : std::vector<std::pair<Assignment, std::string>>{
             {{{"quantization", "awq"}}, "vllm takes no weights from it with quantization awq"},
             {{{"pipeline_parallel_size", 2}},
              "vllm takes no weights from it with pipeline_parallel_size 2"},
             {{{"speculative_method", "mtp"}},
              "vllm takes no weights from it with speculative_method mtp"}}) {
        INFO(why);
        CHECK_FALSE(world.hold(values));
        CHECK(world.cache->why_not() == why);
        CHECK_FALSE(alive(world.id(world.started().size() - 1)));
        CHECK(world.hold({}));
    }
    fs::remove_all(world.hub.model());
    CHECK_FALSE(world.hold({}));
    CHECK(has(world.cache->why_not(), "no file of Qwen/Qwen3-8B is on this machine yet"));
}

TEST_CASE("weight cache: a daemon that dies or never holds weights is not started again for them") {
    const DaemonWorld world;
    REQUIRE(world.hold({}));
    CHECK(world.cache->alive());
    REQUIRE(kill(world.id(0), SIGKILL) == 0);
    REQUIRE(comes_true([&] { return !world.cache->alive(); }));
    for (int again = 0; again < 2; ++again) {
        CHECK_FALSE(world.hold({}));
        CHECK(world.cache->why_not() == "its daemon died");
    }
    CHECK(world.started().size() == 1);

    world.folder.write("broken", "");
    for (int again = 0; again < 2; ++again) {
        CHECK_FALSE(world.hold({{"quantization", "fp8"}}));
        CHECK(has(world.cache->why_not(), "the daemon ended"));
    }
    CHECK(world.started().size() == 2);
}

TEST_CASE("weight cache: one daemon for each copy's devices, and a stop is heard while they load") {
    const DaemonWorld world;
    REQUIRE(world.hold({}, {"0", "1"}));
    REQUIRE(world.started().size() == 2);
    // They start together: either may come first.
    const std::size_t of_one = has(world.started().at(0), " 1 preload ") ? 0 : 1;
    CHECK(has(world.started().at(1 - of_one), " 0 preload "));
    CHECK(has(world.started().at(of_one), " 1 preload "));
    REQUIRE(world.hold({}, {"1"}));
    CHECK_FALSE(alive(world.id(1 - of_one)));
    CHECK(alive(world.id(of_one)));

    std::stop_source stop;
    stop.request_stop();
    CHECK_FALSE(world.hold({{"quantization", "fp8"}}, {"1"}, stop.get_token()));
    for (std::size_t i = 0; i < world.started().size(); ++i) CHECK_FALSE(alive(world.id(i)));
    CHECK(world.cache->alive());                          // none is held
    CHECK(world.hold({{"quantization", "fp8"}}, {"1"}));  // a stop is held against nobody
}

TEST_CASE(
    "weight cache: the files of a checkpoint are a file, a folder, or what the hub's cache has") {
    const TemporaryFolder folder;
    const std::map<std::string, std::string> nothing{
        {"HF_HOME", (folder.path() / "hub-home").string()}};
    const std::string file = folder.write("model.gguf", "weights").string();
    const auto of_file = checkpoint_files(file, nothing);
    REQUIRE(of_file);
    CHECK(checkpoint_files(file, nothing) == of_file);
    const auto of_folder = checkpoint_files(folder.path().string(), nothing);
    CHECK(of_folder);
    folder.write("more.safetensors", "");
    CHECK(checkpoint_files(folder.path().string(), nothing) != of_folder);
    CHECK(checkpoint_files(file, nothing) == of_file);
    CHECK_FALSE(checkpoint_files("Qwen/Qwen3-8B", nothing));
    CHECK_FALSE(checkpoint_files("", nothing));
    const HubFolder hub;
    CHECK(checkpoint_files("Qwen/Qwen3-8B",
                           {{"HF_HUB_CACHE", (hub.folder.path() / "hub").string()}}));
}

namespace {

/// A study with a weight cache; the words of what was started, in their order, without process ids.
struct CachedStudy {
    explicit CachedStudy(const std::string& space = DeployedStudy::Text{}.space)
        : study(text(space)) {}
    static DeployedStudy::Text text(const std::string& space) {
        DeployedStudy::Text result;
        result.space = space;
        result.deploy += ", weight_cache: on";
        return result;
    }
    [[nodiscard]] Ran run() const { return study.run_well(hub.as_home()); }
    [[nodiscard]] std::vector<std::string> started(const std::string& with) const {
        std::vector<std::string> result;
        for (const auto& engine : study.engines())
            if (has(engine.words, with)) result.push_back(engine.words);
        return result;
    }
    HubFolder hub{};
    DeployedStudy study;
};

double figure_of(const Trial& trial, const std::string& name) {
    return trial.measurement()->metrics.at(name).value;
}

}  // namespace

TEST_CASE(
    "weight cache: a study takes weights from it where it looks, and starts cold where it "
    "decides") {
    const CachedStudy cached;
    const Ran ran = cached.run();
    CHECK(has(ran.out, best_command));
    CHECK_FALSE(has(ran.out, from_the_cache));
    CHECK(has(read_file(cached.study.directory() / "report.md"),
              "took their weights from the engine's weight cache"));
    const std::vector<Trial> trials = cached.study.trials();
    std::vector<Configuration> seen;
    REQUIRE(trials.size() > 3);
    for (const Trial& trial : trials) {
        INFO(trial.id << ": " << trial.configuration.text());
        const bool first = !contains(seen, trial.configuration);
        seen.push_back(trial.configuration);
        REQUIRE(trial.measurement() != nullptr);
        CHECK(figure_of(trial, "weight_cache") == (trial.id > 0 && first ? 1 : 0));
        CHECK(figure_of(trial, "trial_weight_cache_seconds") >= 0);
    }
    CHECK(cached.started(from_the_cache).size() == 2);
    CHECK(cached.started(" preload ").size() == 1);
    CHECK(cached.started(" serve ").size() == trials.size());
    CHECK(cached.study.left().empty());
}

TEST_CASE(
    "weight cache: an engine that serves on for another level of load still has weights of the "
    "cache") {
    DeployedStudy::Text text;
    text.space = "{max_num_seqs: {choice: [4, 32], default: 4}, load.concurrency: [2, 8]}";
    text.workload = "{kind: random, input_tokens: 64, output_tokens: 32}, requests: 16";
    text.deploy += ", weight_cache: on";
    const DeployedStudy study(text);
    const HubFolder hub;
    (void)study.run_well(hub.as_home());
    bool served_on = false;
    for (const Trial& trial : study.trials()) {
        INFO(trial.id << ": " << trial.configuration.text() << ": " << trial.why);
        if (trial.why == "confirmed from a cold start") continue;
        const bool usual = *trial.configuration.find("max_num_seqs") == Value(std::int64_t{4});
        CHECK(figure_of(trial, "weight_cache") == (usual ? 0 : 1));
        served_on = served_on || (!usual && figure_of(trial, "trial_start_seconds") == 0);
    }
    CHECK(served_on);
    CHECK(study.left().empty());
}

TEST_CASE("weight cache: what fails with it is measured without it before it is told") {
    SECTION("the cache's fault") {
        const CachedStudy cached;
        cached.study.set_faults({{from_the_cache, "exit_at_load=1"}});
        const Ran ran = cached.run();
        CHECK(has(ran.out, best_command));
        for (const Trial& trial : cached.study.trials())
            CHECK(figure_of(trial, "weight_cache") == 0);
        CHECK(cached.started(from_the_cache).size() == 1);  // given up
        CHECK(fs::exists(cached.study.directory() / "trials/1/engine-warm-start.log"));
        CHECK(has(ran.err, "once more from a cold start"));
    }
    SECTION("the configuration's fault") {
        const CachedStudy cached;
        cached.study.set_faults({{"--max-num-seqs=3", "exit_at_load=1"}});
        const Ran ran = cached.run();
        CHECK(cached.started("--max-num-seqs=3 ").size() == 1);
        CHECK(cached.started("--max-num-seqs=3").size() >= 2);
        const std::vector<Trial> trials = cached.study.trials();
        CHECK(count_if(trials, [](const Trial& trial) { return trial.failure() != nullptr; }) >= 1);
        CHECK(cached.started(from_the_cache).size() == 2);  // the third still takes them
    }
}

TEST_CASE("weight cache: an engine that does not say that it took them is not measured so") {
    const CachedStudy cached;
    const fs::path script = cached.study.folder() / "bin/vllm";
    std::string text = read_file(script);
    const std::string end = "vllm \"$@\"\n";
    REQUIRE(text.ends_with(end));
    text.replace(text.size() - end.size(), end.size(),
                 "vllm \"$@\" 2> >(grep --line-buffered -v Mapped >&2)\n");
    text.replace(0, std::string("#!/bin/sh").size(), "#!/bin/bash");
    std::ofstream(script) << text;
    const Ran ran = cached.study.run({"--trials", "2"}, cached.hub.as_home());
    INFO(ran.out << ran.err);
    CHECK(cached.started(from_the_cache).size() == 1);
    for (const Trial& trial : cached.study.trials()) CHECK(figure_of(trial, "weight_cache") == 0);
}

TEST_CASE("weight cache: a tuner that is killed leaves no daemon") {
    const CachedStudy cached;
    cached.study.set_faults({{from_the_cache, "slow_start=20"}});
    {
        ChildProcess tuner(cached.study.words("run", {}, cached.hub.as_home()),
                           cached.study.folder());
        REQUIRE(comes_true([&] { return !cached.started(from_the_cache).empty(); }));
        REQUIRE(kill(tuner.id(), SIGKILL) == 0);
        REQUIRE(comes_true([&] { return tuner.wait_at_most(10ms).has_value(); }));
    }
    CHECK(comes_true([&] { return cached.study.left().empty(); }));
    cached.study.set_faults({});
    const Ran ran = cached.run();
    CHECK(has(ran.out, best_command));
    CHECK(cached.study.left().empty());
}

TEST_CASE("weight cache: asked for where it cannot be, a study is refused with the reason") {
    const TemporaryFolder folder;
    const auto validated = [&](const std::string& engine, const std::string& deploy,
                               const std::string& more) {
        folder.write("study.yaml", "study: s\nmodel: Qwen/Qwen3-8B\nengine: " + engine +
                                       "\nhardware: h100-sxm\nworkloads: chat\nobjective: "
                                       "{maximize: total_tokens_per_second}\nspace: {}\n"
                                       "stress: off\nevaluator: {deploy: {weight_cache: on" +
                                       deploy + "}}\n" + more);
        return ran({SERVETUNE_PROGRAM, "validate", "study.yaml"}, folder.path());
    };
    for (const auto& [engine, deploy, more, why] : std::vector<std::array<std::string, 4>>{
             {"llama.cpp", "", "", "llama.cpp has none"},
             {"vllm", "", "engine_versions: {vllm: \"0.24.0\"}\n",
              "vllm has one from 0.31, and the study is for 0.24.0"},
             {"sglang", "", "", "sglang has none"},
             {"vllm", ", container: {image: vllm}", "", "must be processes of this machine"}}) {
        const Ran found = validated(engine, deploy, more);
        INFO(found.out << found.err);
        CHECK(found.code != 0);
        CHECK(has(found.out + found.err, why));
    }
}
