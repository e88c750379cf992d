// SPDX-License-Identifier: Apache-2.0
// An engine over several nodes, in a cluster that is a folder; cluster_over_nodes_test.cpp has it
// on a real one.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "deploy/pod_manifest.hpp"
#include "servetune/detail/base/present.hpp"
#include "support/deployed_study.hpp"
#include "support/fake_cluster.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <variant>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// A launcher for nodes of two devices, and an engine of four.
LauncherWorld over_two_nodes(const FakeCluster& cluster) {
    KubernetesOptions options = cluster.options();
    options.devices_of_node = 2;
    return {.launcher = kubernetes_launcher(options),
            .devices = 4,
            .over_nodes = SeveralNodes{{"{rank}/{nodes}", "at-{leader}"}, {"--headless"}}};
}

/// `leads`: what the first node does; `follows`: the other one. Both say their words first.
std::vector<std::string> engine(const std::string& leads, const std::string& follows) {
    return {"/bin/sh", "-c",
            "echo \"node $*\"; case \"$*\" in *--headless*) " + follows + " ;; *) " + leads +
                " ;; esac",
            "x"};
}
const std::string serves = "while :; do sleep 0.1; done";

/// The failure of a launch that has ended.
Failure end_of(const LauncherWorld& world, Launched& one) {
    REQUIRE(one.process().wait(30s));
    INFO(one.said());
    return present(world.launcher->ended(one.launch(), one.process().exit_code().value_or(0),
                                         one.process().lines()));
}

std::size_t times_in(const std::string& text, const std::string& part) {
    std::size_t result = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++result;
    return result;
}

}  // namespace

TEST_CASE("kubernetes nodes: an engine starts once all its pods run, and is one Job") {
    const FakeCluster cluster;
    cluster.set("pending", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
    const LauncherWorld world = over_two_nodes(cluster);
    Launched one(world, engine("trap 'echo was told; exit 3' TERM; " + serves, serves));
    REQUIRE(comes_true([&] {
        return has(world.launcher->place(one.launch()).waits, "Insufficient nvidia.com/gpu");
    }));
    cluster.unset("pending");
    REQUIRE(one.comes_to_say("node 0/2 at-127.0.0.1\n"));
    LaunchedAt at;
    REQUIRE(comes_true([&] { return (at = world.launcher->place(one.launch())).waits.empty(); }));
    CHECK(at.host == "127.0.0.1");
    CHECK(at.place.at("node") == "node-1, node-2");
    CHECK(cluster.jobs().size() == 1);
    CHECK(comes_true([&] {
        return cluster.content("jobs/" + one.launch().name + "/log-1")
                   .find("node 1/2 at-127.0.0.1 --headless\n") != std::string::npos;
    }));
    CHECK_FALSE(has(one.said(), "--headless"));  // its log is the first one's
    CHECK_FALSE(world.launcher->lost(one.launch()));
    CHECK(times_in(cluster.content("calls"), "annotate pods ") == 1);
    CHECK_FALSE(one.end(10s).killed);
    CHECK(one.comes_to_say("was told"));
    CHECK(world.launcher->remove(one.launch()) == "");
    CHECK(one.comes_to_nothing());
    CHECK(comes_true([&] { return cluster.jobs().empty(); }));
}

TEST_CASE("kubernetes nodes: pods become the engine of their rank once they know the leader") {
    const TemporaryFolder folder;
    LaunchRequest request;
    request.devices = 4;
    request.command.argv = {"printf", "<%s>", "it's \"$(HOME)\" $x"};
    request.over_nodes =
        SeveralNodes{{"--at={leader}:20000", "{leader}", "{rank}/{nodes}", "$x'"}, {"--headless"}};
    const KubernetesOptions options{.pod_template = FakeCluster().options().pod_template,
                                    .devices_of_node = 2};
    const auto printed = [&](const std::string& leader, const std::string& index) {
        const nlohmann::json job = trial_job(options, request, "n", "l");
        std::vector<std::string> words{"/usr/bin/env", "JOB_COMPLETION_INDEX=" + index,
                                       "leader=other"};
        for (std::string word : job["spec"]["template"]["spec"]["containers"][0]["command"]) {
            const auto replace = [&](const std::string& from, const std::string& to) {
                for (auto at = word.find(from); at != std::string::npos;
                     at = word.find(from, at + to.size()))
                    word.replace(at, from.size(), to);
            };
            replace("$$", "$");  // as a node does
            replace("/run/servetune", folder.path().string());
            words.push_back(word);
        }
        folder.write(".leader", "");
        std::thread later([&] {
            std::this_thread::sleep_for(200ms);
            folder.write(".leader", leader);  // without a line end, as a node writes it
        });
        const Ran ended = ran(words, folder.path());
        later.join();
        return ended.out;
    };
    const std::string own = "<it's \"$(HOME)\" $x>";
    CHECK(printed("10.1.2.3", "0") == own + "<--at=10.1.2.3:20000><10.1.2.3><0/2><$x'>");
    CHECK(printed("10.1.2.3", "1") ==
          own + "<--at=10.1.2.3:20000><10.1.2.3><1/2><$x'><--headless>");
    CHECK(printed("fd00::3", "1") == own + "<--at=[fd00::3]:20000><fd00::3><1/2><$x'><--headless>");
}

TEST_CASE("kubernetes nodes: where another node's pod ends, the trial ends with its last lines") {
    const FakeCluster cluster;
    const LauncherWorld world = over_two_nodes(cluster);
    Launched one(world, engine("trap 'exit 0' TERM; echo begins; " + serves,
                               "sleep 1; echo CUDA out of memory there; exit 41"));
    const Failure failure = end_of(world, one);
    CHECK(failure.kind == FailureKind::other);  // the engine's file says what the line means
    CHECK(has(failure.message,
              "-1-abcde, rank 1 of the engine, ended with exit code 41; its last line: CUDA out of "
              "memory there"));
    CHECK(one.comes_to_say("\nCUDA out of memory there\n"));
    CHECK(one.comes_to_say("begins\n"));
    CHECK(world.launcher->remove(one.launch()) == "");
    CHECK(comes_true([&] { return cluster.jobs().empty(); }));
}

TEST_CASE("kubernetes nodes: one that ends well is missed too, while the first one serves on") {
    const FakeCluster cluster;
    const LauncherWorld world = over_two_nodes(cluster);
    Launched one(world, engine("trap 'exit 0' TERM; " + serves, "sleep 1; exit 0"));
    CHECK(has(end_of(world, one).message, "rank 1 of the engine, ended with exit code 0"));
}

TEST_CASE("kubernetes nodes: a trial is preempted where any of its pods is") {
    const FakeCluster cluster;
    const LauncherWorld world = over_two_nodes(cluster);
    Launched one(world, engine("echo begins; " + serves,
                               "trap 'echo EngineDeadError; exit 1' TERM; " + serves));
    REQUIRE(one.comes_to_say("begins"));
    cluster.set("jobs/" + one.launch().name + "/disrupted-1", "PreemptionByScheduler");
    const Failure failure = end_of(world, one);
    CHECK(failure.kind == FailureKind::infrastructure);
    CHECK(has(failure.message, "-1-abcde was preempted"));
}

TEST_CASE("kubernetes nodes: an end of the first one is its own, and takes the others along") {
    const FakeCluster cluster;
    const LauncherWorld world = over_two_nodes(cluster);
    Launched one(world, engine("sleep 1; exit 5", serves));
    REQUIRE(one.process().wait(30s));
    CHECK(one.process().exit_code() == 5);
    CHECK_FALSE(world.launcher->ended(one.launch(), 5, one.process().lines()));
    CHECK(world.launcher->remove(one.launch()) == "");
    CHECK(one.comes_to_nothing());
}

TEST_CASE(
    "kubernetes nodes: of three the one that fails is named, and what a killed client leaves is "
    "ended") {
    const FakeCluster cluster;
    LauncherWorld world = over_two_nodes(cluster);
    world.devices = 6;
    {
        Launched one(world, engine("echo begins; " + serves,
                                   "case $1 in 2/3) sleep 1; exit 7 ;; *) " + serves + " ;; esac"));
        CHECK(has(end_of(world, one).message, "rank 2 of the engine, ended with exit code 7"));
    }
    Launched one(world, engine("echo begins; " + serves, serves));
    REQUIRE(one.comes_to_say("begins"));
    REQUIRE(::kill(one.process().id(), SIGKILL) == 0);
    REQUIRE(one.process().wait(5s));
    CHECK(world.launcher->leftovers(one.mark()).size() == 1);
    CHECK(world.launcher->end_leftovers(one.mark()).empty());
    CHECK(one.comes_to_nothing());
}

TEST_CASE(
    "kubernetes nodes: a cluster that forbids to tell the pods is named, and nothing is left") {
    const FakeCluster cluster;
    cluster.set("no-annotations");
    const LauncherWorld world = over_two_nodes(cluster);
    const TemporaryFolder folder;
    LaunchRequest request;
    request.devices = 4;
    request.over_nodes = world.over_nodes;
    request.command.argv = engine(serves, serves);
    request.mark = folder.path().string();
    const Launch launch = world.launcher->launch(request);
    ProcessOptions options = client_of(launch);
    const std::string usual = "\"unanswered_within_seconds\":60.0";
    REQUIRE(has(options.told, usual));
    options.told.replace(options.told.find(usual), usual.size(),
                         "\"unanswered_within_seconds\":2.0");
    Process process(options);
    REQUIRE(process.wait(30s));
    const auto failure =
        world.launcher->ended(launch, process.exit_code().value_or(0), process.lines());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    CHECK(has(failure->message, "the pods cannot be told the address of the first one"));
    CHECK(world.launcher->remove(launch) == "");
    CHECK(comes_true([&] { return cluster.jobs().empty(); }));
}

TEST_CASE(
    "kubernetes nodes: a study tries an engine on one node and over two, with the engine's own "
    "words") {
    const FakeCluster cluster;
    const KubernetesOptions options = cluster.options();
    DeployedStudy::Text text;
    text.space = "{tensor_parallel_size: {choice: [1, 2], default: 1}}";
    text.workload =
        "{kind: random, input_tokens: 64, output_tokens: 32}, requests: 16, arrival: {rate: inf}";
    text.deploy = "kubernetes: {template: pod.json, devices: \"\", reach: pod, program: [\"" +
                  options.program[0] + "\", \"" + options.program[1] +
                  "\"]}, ready_within: 20s, stop_within: 2s, stall_timeout: 10s, trial_within: "
                  "60s, warm_up: 1, environment: "
                  "{SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", "
                  "SERVETUNE_SEARCH_SPACES: \"" SERVETUNE_SOURCE "/search_spaces\", PATH: \"" +
                  cluster.programs_of_pods() + ":/usr/local/bin:/usr/bin:/bin\"}";
    text.more = "budget: {trials: 2}\naudit: off\nhardware: {device: chip.yaml, count: 2}\n";
    const DeployedStudy study(text);
    write_file(study.folder() / "pod.json", options.pod_template);
    write_file(
        study.folder() / "chip.yaml",
        "hardware: chip-of-one\nalso: []\narchitecture: hopper\nmemory_bytes: "
        "8.5e+10\nmemory_bandwidth_bytes_per_second: 3.35e+12\n"
        "flops_per_second: {bf16: 9.894e+14}\nlink_bytes_per_second: 9.0e+11\ndevices_per_node: 1\n"
        "network_bytes_per_second: 5.0e+10\nsource: a test's\n");
    cluster.put_program("vllm", study.folder() / "bin/vllm");
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(has(read_file(study.directory() / "report.md"),
              "An engine of more than 1 devices had a pod on each of several nodes"));
    const std::string calls = cluster.content("calls");
    CHECK(has(calls, "auth can-i patch pods "));
    CHECK(times_in(calls, "annotate pods ") == 1);
    const std::vector<Trial> trials = study.trials();
    REQUIRE(trials.size() == 2);
    for (const Trial& trial : trials) {
        REQUIRE(trial.outcome);
        const auto* failure = std::get_if<Failure>(&*trial.outcome);
        INFO((failure != nullptr ? failure->message : ""));
        REQUIRE(std::holds_alternative<Measurement>(*trial.outcome));
        const bool over = trial.configuration.integer("tensor_parallel_size") == 2;
        CHECK(std::get<Measurement>(*trial.outcome).place.at("node") ==
              (over ? "node-1, node-2" : "node-1"));
    }
    CHECK(comes_true([&] { return cluster.jobs().empty(); }));
    CHECK(study.left().empty());
}
