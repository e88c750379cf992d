// SPDX-License-Identifier: Apache-2.0
// `deploy: {workers: ...}`: several engines at once, each on its own part of the machine.
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "base/present.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A start takes about 1.5 s, in which the engine sleeps; the load test takes a tenth of that.
DeployedStudy::Text text_of_workers(const std::string& workers) {
    DeployedStudy::Text text;
    text.space =
        "{max_num_seqs: {choice: [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22], "
        "default: 8}}";
    text.workload =
        "{kind: random, input_tokens: 64, output_tokens: 16}, requests: 16, arrival: {concurrency: "
        "4}";
    text.deploy =
        "ready_within: 30s, stop_within: 1s, stall_timeout: 2s, trial_within: 60s, warm_up: 1, " +
        workers;
    text.more = "budget: {trials: 20}\n";
    text.clock = "--start-scale 25 --time-scale 12";
    return text;
}

/// Each start writes which devices it sees.
void note_devices(const DeployedStudy& study) {
    const std::filesystem::path file = study.folder() / "bin/vllm";
    std::string script = read_file(file);
    script.insert(script.find('\n') + 1, "echo \"$CUDA_VISIBLE_DEVICES\" >> '" +
                                             (study.folder() / "devices.txt").string() + "'\n");
    write_file(file, script);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
}

}  // namespace

TEST_CASE("worker study: four engines at once, each sees its own device, and the starts overlap") {
    const DeployedStudy study(text_of_workers("gpus: \"0,1,2,3\", workers: 4"));
    note_devices(study);
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    REQUIRE((ended.code == 0 || ended.code == 1));
    CHECK(has(ended.err, " when the others run too, "));
    const std::vector<Trial> trials = study.trials();
    CHECK(trials.size() >= 15);
    for (const Trial& trial : trials) CHECK(trial.told());
    if (has(ended.err, "4 trials at once")) {
        CHECK(most_trials_at_once(trials) == 4);
        double sum = 0;
        for (const Trial& trial : trials) sum += trial.cost_seconds();
        CHECK(sum > 1.8 * (present(trials.back().told_at) - present(trials.front().started_at)));
    }
    std::map<std::string, std::size_t> starts;
    std::istringstream lines(read_file(study.folder() / "devices.txt"));
    for (std::string line; std::getline(lines, line);) ++starts[line];
    CHECK(starts.size() == 4);
    for (const char* device : {"0", "1", "2", "3"}) CHECK(starts[device] >= 1);
    CHECK(study.left().empty());
}

TEST_CASE(
    "worker study: kill -9 leaves nothing that the next run does not end, and no told trial is "
    "lost") {
    const DeployedStudy study(text_of_workers("gpus: \"0,1\", workers: 2"));
    std::vector<Trial> before;
    for (int round = 0; round < 3; ++round) {
        ChildProcess process(study.words("run", {"--quiet"}), study.folder());
        std::this_thread::sleep_for(std::chrono::milliseconds(2500 + 1300 * round));
        if (process.wait_at_most(std::chrono::seconds(0))) break;
        REQUIRE(::kill(process.id(), SIGKILL) == 0);
        REQUIRE(process.wait_at_most(std::chrono::seconds(5)));
        const std::vector<Trial> now = study.trials();
        for (const Trial& trial : before)
            if (trial.told()) CHECK(now[trial.id].outcome == trial.outcome);
        before = now;
    }
    const Ran ended = study.run({"--trials", "12"});  // more than the killed runs left open
    INFO(ended.out << ended.err);
    CHECK((ended.code == 0 || ended.code == 1));
    for (const Trial& trial : study.trials()) CHECK(trial.told());
    CHECK(study.left().empty());
}

TEST_CASE("worker study: each phase names its trial, between that trial's start and its end",
          "[long]") {
    const DeployedStudy study(text_of_workers("gpus: \"0,1\", workers: 2"));
    const Ran ended = study.run({"--json-lines", "--trials", "6"});
    INFO(ended.out << ended.err);
    REQUIRE((ended.code == 0 || ended.code == 1));
    std::set<std::int64_t> running;
    std::size_t most = 0;
    std::map<std::int64_t, std::set<std::string>> phases;
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) {
        const auto event = nlohmann::json::parse(line);
        const std::string name = event.at("event");
        if (name == "started") running.insert(event.at("trial").get<std::int64_t>());
        if (name == "told") running.erase(event.at("trial").get<std::int64_t>());
        most = std::max(most, running.size());
        if (name != "phase") continue;
        const auto trial = event.at("trial").get<std::int64_t>();
        CHECK(running.contains(trial));
        CHECK(phases[trial].insert(event.at("phase")).second);  // once each
    }
    CHECK(most == 2);
    for (const auto& [trial, of_trial] : phases) CHECK(of_trial.contains("starting the engine"));
    CHECK(phases.size() >= 6);
}

TEST_CASE("worker study: parts that cannot be are refused before anything starts") {
    const auto refused = [](const std::string& deploy) {
        const DeployedStudy study(text_of_workers(deploy));
        const Ran ended = study.run();
        CHECK(ended.code == 2);
        CHECK(study.engines().empty());
        return ended.err;
    };
    CHECK(has(refused("workers: 2"), "2 trials at once need parts of the machine of their own"));
    CHECK(has(refused("gpus: \"0,1,2\", workers: 2"),
              "2 trials at once cannot share 3 gpus in equal parts"));
    CHECK(has(refused("cores: [0], workers: 2"), "cannot share 1 cores in equal parts"));
}
