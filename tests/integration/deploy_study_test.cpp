// SPDX-License-Identifier: Apache-2.0
// Trials on real processes: the evaluator by itself, and autotune from outside. The engine is simengine on a fast clock.
#include "servetune/engine/engine_evaluator.hpp"
#include "servetune/io/catalogue.hpp"
#include "servetune/io/files.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

const fs::path source = SERVETUNE_SOURCE;

/// `vllm` and `trtllm-serve` in a folder, which are simengine.
void link_engines(const fs::path& folder) {
    fs::create_directories(folder);
    for (const char* name : {"vllm", "trtllm-serve"}) fs::create_symlink(SIMENGINE_PROGRAM, folder / name);
}

struct Setting {
    explicit Setting(const std::string& simengine_options) {
        link_engines(folder.path() / "bin");
        Engine engine = Catalogue(source / "search_spaces").engine(std::string("vllm"));
        engine.launch.front() = (folder.path() / "bin" / "vllm").string();
        SpaceDescription description{{engine}};
        SpaceEntry entry{"max_num_seqs"};
        entry.domain = ChoiceDomain{{std::int64_t{64}, std::int64_t{128}}};
        description.entries = {entry};
        description.others_searched = false;
        composition = std::make_unique<Composition>(std::move(description));
        options.folder = folder.path() / "study";
        options.deploy.environment = {{"SIMENGINE_OPTIONS", "--start-scale 1000 --time-scale 50 " + simengine_options},
                                      {"SERVETUNE_SEARCH_SPACES", (source / "search_spaces").string()}};
        options.deploy.mark = options.folder.string();
        options.deploy.stop_within_seconds = 3;
        options.deploy.ready_within_seconds = 5;
        options.warm_up_requests = 2;
        options.load.stall_timeout_seconds = 1;
    }
    Outcome measure(const EvaluationContext& context = {}) {
        Workload workload;
        workload.name = "small";
        workload.dataset.input_tokens = 64;
        workload.dataset.output_tokens = 32;
        workload.requests = 40;
        workload.arrival.kind = Arrival::Kind::concurrency;
        workload.arrival.in_flight = 8;
        workload.ignore_eos = true;
        EngineEvaluator evaluator(*composition, "Qwen/Qwen3-8B", {workload}, {}, options);
        const SearchSpace space(composition->parameters(), composition->constraints());
        return evaluator.evaluate(space.default_configuration(), context);
    }
    [[nodiscard]] bool nothing_left() const { return leftovers(options.deploy.mark).empty(); }

    TemporaryFolder folder;
    std::unique_ptr<Composition> composition;
    EngineEvaluator::Options options;
};

FailureKind kind_of(const Outcome& outcome) {
    REQUIRE(std::holds_alternative<Failure>(outcome));
    INFO(std::get<Failure>(outcome).message);
    CHECK_FALSE(std::get<Failure>(outcome).message.empty());
    return std::get<Failure>(outcome).kind;
}

}  // namespace

TEST_CASE("deploy: a trial starts the engine, measures it and leaves nothing") {
    Setting setting("");
    const Outcome outcome = setting.measure();
    REQUIRE(std::holds_alternative<Measurement>(outcome));
    const Metrics& metrics = std::get<Measurement>(outcome).metrics;
    CHECK(metrics.at("success_ratio").value == 1);
    CHECK(metrics.at("output_tokens").value == 40 * 32);
    for (const char* cost : {"trial_start_seconds", "trial_warm_up_seconds", "trial_measure_seconds", "trial_stop_seconds"})
        CHECK(metrics.at(cost).value > 0);
    CHECK(setting.nothing_left());
    CHECK(read_file(setting.options.folder / "trials/0/engine.log").find("Application startup complete") != std::string::npos);
}

TEST_CASE("deploy: what goes wrong is told as what it is, and leaves nothing") {
    const auto outcome_of = [](const std::string& options) {
        Setting setting(options);
        const Outcome outcome = setting.measure();
        CHECK(setting.nothing_left());
        return outcome;
    };
    const Outcome died = outcome_of("--misbehave die_at_tokens=500");
    CHECK(name_in(failure_kinds, kind_of(died)) == "crashed_under_load");
    INFO(std::get<Failure>(died).message);
    CHECK(std::get<Failure>(died).message.find("EngineCore") != std::string::npos);  // the log's own words
    CHECK(name_in(failure_kinds, kind_of(outcome_of("--misbehave exit_at_load=137"))) == "other");
    CHECK(name_in(failure_kinds, kind_of(outcome_of("--misbehave wrong_model=some/other"))) == "wrong_model");
    CHECK(name_in(failure_kinds, kind_of(outcome_of("--hardware l4 --model Qwen/Qwen3-32B"))) == "out_of_memory");
    CHECK(std::holds_alternative<Measurement>(outcome_of("--misbehave ignore_term")));
    CHECK(std::holds_alternative<Measurement>(outcome_of("--misbehave grandchild_keeps_port")));
}

TEST_CASE("deploy: a trial that takes too long is hung, one that the user stops is cancelled, and the machine's fault is no failure") {
    Setting slow("--misbehave stall_mid_stream=300");
    slow.options.trial_within_seconds = 3;
    slow.options.load.stall_timeout_seconds = 60;
    CHECK(name_in(failure_kinds, kind_of(slow.measure())) == "hung");
    CHECK(slow.nothing_left());

    Setting stopped("--misbehave stall_mid_stream=300");
    stopped.options.load.stall_timeout_seconds = 60;
    std::stop_source stop;
    std::jthread soon([&] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        stop.request_stop();
    });
    EvaluationContext context;
    context.stop = stop.get_token();
    CHECK(name_in(failure_kinds, kind_of(stopped.measure(context))) == "cancelled");
    CHECK(stopped.nothing_left());

    Setting nowhere("");
    nowhere.options.infrastructure_retries = 0;
    fs::remove(nowhere.folder.path() / "bin" / "vllm");
    CHECK(message_of<IoError>([&] { (void)nowhere.measure(); }).find("trial 0 cannot be measured here") == 0);
}

TEST_CASE("deploy: autotune tunes engines that it starts, goes on after kill -9, and ends what was left") {
    const TemporaryFolder folder;
    link_engines(folder.path() / "bin");
    const std::string path = (folder.path() / "bin").string() + ":" + std::getenv("PATH");
    const std::vector<std::string> words{SERVETUNE_PROGRAM,
                                         "run",
                                         (source / "search_spaces/studies/simengine.yaml").string(),
                                         "--directory",
                                         (folder.path() / "study").string(),
                                         "--json",
                                         "--quiet"};
    const std::map<std::string, std::string> environment{{"PATH", path}, {"SIMENGINE_OPTIONS", "--start-scale 500 --time-scale 20"}};
    std::vector<std::string> command{"/usr/bin/env"};
    for (const auto& [name, value] : environment) command.push_back(name + "=" + value);
    command.insert(command.end(), words.begin(), words.end());
    {
        ChildProcess first(command, folder.path());  // killed with -9 in the middle of a trial
        std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    }
    ChildProcess second(command, folder.path());
    REQUIRE(second.wait_at_most(std::chrono::seconds(60)) == 0);
    const auto report = nlohmann::json::parse(second.out());
    CHECK(report.at("trials").at("told").get<int>() >= 6);
    CHECK(report.at("trials").at("failed").get<int>() == 1);  // the context that the model was not made for
    CHECK(report.at("failures").dump().find("rejected_flags") != std::string::npos);
    CHECK(report.at("recommended").at("command").get<std::string>().find("Qwen/Qwen3-14B-FP8") != std::string::npos);
    CHECK(leftovers((folder.path() / "study").string()).empty());
}
