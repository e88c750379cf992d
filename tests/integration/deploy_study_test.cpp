// SPDX-License-Identifier: Apache-2.0
// Trials on real processes: the evaluator by itself, and autotune from outside. The engine is
// simengine on a fast clock.
#include "base/files.hpp"
#include "deploy/trial_folders.hpp"
#include "engine/load_level.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/engine_evaluator.hpp"
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const fs::path source = SERVETUNE_SOURCE;

/// `vllm` and `trtllm-serve` in a folder, which are simengine.
void link_engines(const fs::path& folder) {
    fs::create_directories(folder);
    for (const char* name : {"vllm", "trtllm-serve"})
        fs::create_symlink(SIMENGINE_PROGRAM, folder / name);
}

struct StudySetting {
    explicit StudySetting(const std::string& simengine_options,
                          std::vector<Parameter> load_levels = {}) {
        link_engines(folder.path() / "bin");
        Engine engine = Catalogue(source / "search_spaces").engine(std::string("vllm"));
        engine.launch.front() = (folder.path() / "bin" / "vllm").string();
        SpaceDescription description{{engine}};
        SpaceEntry entry{"max_num_seqs"};
        entry.domain = ChoiceDomain{{std::int64_t{64}, std::int64_t{128}}};
        description.entries = {entry};
        description.others_searched = false;
        description.load_levels = std::move(load_levels);
        composition = std::make_unique<Composition>(std::move(description));
        options.folder = folder.path() / "study";
        options.deploy.environment = {
            {"SIMENGINE_OPTIONS", "--start-scale 1000 --time-scale 25 " + simengine_options},
            {"SERVETUNE_SEARCH_SPACES", (source / "search_spaces").string()}};
        options.deploy.mark = options.folder.string();
        options.deploy.stop_within_seconds = 3;
        options.deploy.ready_within_seconds = 5;
        options.measure.warm_up_requests = 2;
        options.measure.load.stall_timeout_seconds = 1;
    }
    Outcome measure(const EvaluationContext& context = {}) {
        const std::unique_ptr<EngineEvaluator> measuring = evaluator();
        return measuring->evaluate(
            SearchSpace(composition->parameters(), composition->constraints())
                .default_configuration(),
            context);
    }
    [[nodiscard]] std::unique_ptr<EngineEvaluator> evaluator() const {
        Workload workload;
        workload.name = "small";
        workload.dataset.input_tokens = 64;
        workload.dataset.output_tokens = 32;
        workload.requests = 40;
        workload.arrival.kind = Arrival::Kind::concurrency;
        workload.arrival.in_flight = 8;
        workload.ignore_eos = true;
        return std::make_unique<EngineEvaluator>(*composition, "Qwen/Qwen3-8B",
                                                 StudyWorkloads{{workload}}, options);
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
    StudySetting setting("");
    const Outcome outcome = setting.measure();
    REQUIRE(std::holds_alternative<Measurement>(outcome));
    const Metrics& metrics = std::get<Measurement>(outcome).metrics;
    CHECK(metrics.at("success_ratio").value == 1);
    CHECK(metrics.at("output_tokens").value == 40 * 32);
    for (const char* cost : {"trial_start_seconds", "trial_warm_up_seconds",
                             "trial_measure_seconds", "trial_stop_seconds"})
        CHECK(metrics.at(cost).value > 0);
    CHECK(setting.nothing_left());
    CHECK(has(read_file(setting.options.folder / "trials/0/engine.log"),
              "Application startup complete"));
}

TEST_CASE("deploy: what goes wrong is told as what it is, and leaves nothing") {
    const auto outcome_of = [](const std::string& options) {
        StudySetting setting(options);
        const Outcome outcome = setting.measure();
        CHECK(setting.nothing_left());
        return outcome;
    };
    const Outcome died = outcome_of("--fault die_at_tokens=500");
    CHECK(name_in(failure_kinds, kind_of(died)) == "crashed_under_load");
    INFO(std::get<Failure>(died).message);
    CHECK(has(std::get<Failure>(died).message, "EngineCore"));  // the log's own words
    CHECK(name_in(failure_kinds, kind_of(outcome_of("--fault exit_at_load=137"))) == "other");
    CHECK(name_in(failure_kinds, kind_of(outcome_of("--fault wrong_model=some/other"))) ==
          "wrong_model");
    CHECK(name_in(failure_kinds, kind_of(outcome_of("--hardware l4 --model Qwen/Qwen3-32B"))) ==
          "out_of_memory");
    CHECK(std::holds_alternative<Measurement>(outcome_of("--fault ignore_term")));
    CHECK(std::holds_alternative<Measurement>(outcome_of("--fault grandchild_keeps_port")));
}

TEST_CASE(
    "deploy: a trial that takes too long is hung, one that the user stops is cancelled, and the "
    "machine's fault is no failure") {
    StudySetting slow("--fault stall_mid_stream=300");
    slow.options.measure.trial_within_seconds = 3;
    slow.options.measure.load.stall_timeout_seconds = 60;
    CHECK(name_in(failure_kinds, kind_of(slow.measure())) == "hung");
    CHECK(slow.nothing_left());

    StudySetting closed(
        "--fault stall_mid_stream=300");  // eight at a time: each round would wait out its time
    const Outcome outcome = closed.measure();
    CHECK(name_in(failure_kinds, kind_of(outcome)) == "hung");
    CHECK(has(std::get<Failure>(outcome).message,
              "no answer moved for `stall_timeout` (1 s) while some were awaited"));
    CHECK(closed.nothing_left());

    StudySetting stopped("--fault stall_mid_stream=300");
    stopped.options.measure.load.stall_timeout_seconds = 60;
    std::stop_source stop;
    std::jthread soon([&] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        stop.request_stop();
    });
    EvaluationContext context;
    context.stop = stop.get_token();
    CHECK(name_in(failure_kinds, kind_of(stopped.measure(context))) == "cancelled");
    CHECK(stopped.nothing_left());

    StudySetting nowhere("");
    nowhere.options.measure.infrastructure_retries = 0;
    fs::remove(nowhere.folder.path() / "bin" / "vllm");
    CHECK(message_of<IoError>([&] {
              (void)nowhere.measure();
          }).find("trial 0 cannot be measured here") == 0);
}

TEST_CASE("deploy: an engine that dies while it is warmed up has failed, not this machine") {
    // The first completion is the readiness probe's, the next count tokens, then come those of the
    // warm-up.
    for (const char* when : {"die_at_requests=2", "die_at_requests=8"}) {
        StudySetting setting(std::string("--fault ") + when);
        setting.options.measure.infrastructure_retries = 0;
        setting.options.measure.warm_up_requests = 100;
        const Outcome outcome = setting.measure();
        CHECK(name_in(failure_kinds, kind_of(outcome)) == "crashed_under_load");
        const Failure& failure = std::get<Failure>(outcome);
        REQUIRE_FALSE(failure.log_lines.empty());
        CHECK(failure.log_lines.size() <= 10);
        CHECK(failure.log_path == (setting.options.folder / "trials/0/engine.log").string());
        CHECK(setting.nothing_left());
    }
}

TEST_CASE("deploy: levels of load need no new start, replicates and other flags do") {
    Parameter level =
        Parameter::choice(std::string(load_concurrency), {std::int64_t{2}, std::int64_t{8}});
    StudySetting setting("", {level});
    const auto evaluator = setting.evaluator();
    const auto measure = [&](std::uint64_t trial, std::int64_t max_num_seqs,
                             std::int64_t concurrency) {
        EvaluationContext context;
        context.trial = trial;
        const Outcome outcome =
            evaluator->evaluate(Configuration({{"max_num_seqs", max_num_seqs},
                                               {std::string(load_concurrency), concurrency}}),
                                context);
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        return std::get<Measurement>(outcome).metrics;
    };
    const auto started = [&](int trial) {
        return fs::exists(setting.options.folder / "trials" / std::to_string(trial) / "engine.log");
    };
    const Metrics few = measure(0, 64, 2);
    const Metrics more = measure(1, 64, 8);
    CHECK(few.at("trial_start_seconds").value > 0);
    CHECK(more.at("trial_start_seconds").value == 0);
    CHECK(started(0));
    CHECK_FALSE(started(1));
    CHECK(more.at("output_tokens").value == 40 * 32);
    CHECK(more.at("output_tokens_per_second").value >
          1.5 * few.at("output_tokens_per_second").value);
    CHECK_FALSE(setting.nothing_left());  // it serves on
    CHECK(measure(2, 64, 8).at("trial_start_seconds").value > 0);
    CHECK(started(2));
    CHECK(measure(3, 128, 8).at("trial_start_seconds").value > 0);
    CHECK(leftovers(setting.options.deploy.mark).size() == 1);
    // One that has gone meanwhile is not measured.
    for (const Leftover& engine : end_leftovers(setting.options.deploy.mark)) FAIL(engine.command);
    CHECK(measure(4, 128, 2).at("trial_start_seconds").value > 0);
}

TEST_CASE("deploy: an engine that serves between trials ends with its evaluator") {
    StudySetting setting(
        "", {Parameter::choice(std::string(load_concurrency), {std::int64_t{2}, std::int64_t{8}})});
    CHECK(std::holds_alternative<Measurement>(setting.measure()));
    CHECK(setting.nothing_left());
}

TEST_CASE("deploy: the logs of all trials together stay within bounds, the oldest go") {
    StudySetting setting("");
    setting.options.deploy.log_bytes = 1024;
    setting.options.all_logs_bytes = 3 * 1024;
    const auto evaluator = setting.evaluator();
    fs::create_directories(setting.options.folder / "trials" / "notes");
    write_file(setting.options.folder / "trials" / "notes" / "mine.txt", std::string(20000, '.'));
    for (std::uint64_t trial = 0; trial < 12; ++trial) {
        EvaluationContext context;
        context.trial = trial;
        CHECK(std::holds_alternative<Measurement>(
            evaluator->evaluate(Configuration({{"max_num_seqs", std::int64_t{64}}}), context)));
        std::size_t bytes = 0;
        for (const auto& file : fs::recursive_directory_iterator(setting.options.folder / "trials"))
            if (file.is_regular_file() && file.path().filename() == "engine.log")
                bytes += file.file_size();
        CHECK(bytes <= 3 * 1024);
    }
    CHECK(fs::exists(setting.options.folder / "trials/11/engine.log"));
    CHECK_FALSE(fs::exists(setting.options.folder / "trials/0"));
    CHECK(fs::exists(setting.options.folder / "trials/notes/mine.txt"));
}

TEST_CASE("deploy: a trial that runs keeps its folder, whatever room a neighbour's trial needs") {
    const TemporaryFolder folder;
    const auto trial = [&](int number) {
        const fs::path result = folder.path() / std::to_string(number);
        fs::create_directories(result);
        write_file(result / "engine.log", std::string(1000, '.'));
        return result;
    };
    TrialFolders folders;
    folders.begin(trial(3), 100, 100);
    folders.begin(trial(4), 100, 100);
    folders.begin(trial(5), 100, 100);
    for (const char* name : {"3", "4", "5"}) CHECK(fs::exists(folder.path() / name / "engine.log"));
    folders.end(folder.path() / "4");
    folders.begin(trial(6), 100, 100);
    CHECK(fs::exists(folder.path() / "3"));
    CHECK_FALSE(fs::exists(folder.path() / "4"));
    CHECK(fs::exists(folder.path() / "5"));
}

TEST_CASE("deploy: what the machine disturbs is measured once more, then flagged") {
    const auto fake = [](const fs::path& file, const std::string& slowdown) {
        write_file(file,
                   "#!/bin/sh\ncase \"$*\" in\n*compute-apps*) exit 0;;\n"
                   "*) echo '0, GPU-1, 100, 80000, 1200, 1980, 85, 350.00, " +
                       slowdown + "';;\nesac\n");
        fs::permissions(file, fs::perms::owner_all);
    };
    for (const bool throttled : {true, false}) {
        StudySetting setting("");
        std::size_t again = 0;
        setting.options.measure.say = [&](const std::string& line) {
            again += has(line, "measured once more") ? 1 : 0;
        };
        setting.options.measure.watch.emplace();
        setting.options.measure.watch->others_cpu_at_most =
            setting.options.measure.watch->stolen_at_most = 1;  // this machine's own business
        setting.options.measure.watch->nvidia_smi = (setting.folder.path() / "nvidia-smi").string();
        fake(setting.folder.path() / "nvidia-smi",
             throttled ? "0x0000000000000040" : "0x0000000000000004");
        const Outcome outcome = setting.measure();
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        const Validity& validity = std::get<Measurement>(outcome).validity;
        const auto found = count_if(validity.findings, [](const Finding& finding) {
            return finding.id == "gpu_throttled";
        });
        CHECK(found == (throttled ? 1 : 0));
        CHECK(again == (throttled ? 1U : 0U));
        if (throttled) CHECK(validity.verdict != Verdict::sound);
    }
}

TEST_CASE(
    "deploy: autotune tunes engines that it starts, goes on after kill -9, and ends what was "
    "left") {
    const TemporaryFolder folder;
    link_engines(folder.path() / "bin");
    const std::string path = (folder.path() / "bin").string() + ":" + std::getenv("PATH");
    const fs::path study = source / "search_spaces/studies/demo.yaml";
    const std::vector<std::string> words{SERVETUNE_PROGRAM,
                                         "run",
                                         study.string(),
                                         "--directory",
                                         (folder.path() / "study").string(),
                                         "--json",
                                         "--quiet"};
    const std::map<std::string, std::string> environment{
        {"PATH", path}, {"SIMENGINE_OPTIONS", "--start-scale 500"}};
    std::vector<std::string> command{"/usr/bin/env"};
    for (const auto& [name, value] : environment) command.push_back(name + "=" + value);
    command.insert(command.end(), words.begin(), words.end());
    {
        ChildProcess first(command, folder.path());  // killed with -9 in the middle of a trial
        REQUIRE(comes_to_trial(folder.path() / "study", 3));
    }
    ChildProcess second(command, folder.path());
    REQUIRE(second.wait_at_most(std::chrono::seconds(60)) == 0);
    const auto report = nlohmann::json::parse(second.out());
    INFO(report.at("recommended").dump());
    CHECK(report.at("trials").at("told").get<int>() >= 6);
    CHECK(report.at("trials").at("failed").get<int>() == 1);  // awq, which this checkpoint is not
    CHECK(has(report.at("failures").dump(), "rejected_flags"));
    // A busy machine may hide that the gain is proven, not which configuration is fastest.
    CHECK(report.at("best_observed").at("configuration").at("quantization") == "fp8");
    CHECK(leftovers((folder.path() / "study").string()).empty());
}
