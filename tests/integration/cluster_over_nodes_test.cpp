// SPDX-License-Identifier: Apache-2.0
// An engine over two nodes of a real Kubernetes.
#include "base/files.hpp"
#include "contract/launcher_contract.hpp"
#include "servetune/detail/base/present.hpp"
#include "support/deployed_study.hpp"
#include "support/kubernetes_world.hpp"
#include "support/test.hpp"

#include <chrono>
#include <string>
#include <variant>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// Devices that a node says that it has.
constexpr int devices_of_each = 1;

LauncherWorld over_both(const KubernetesWorld& world) {
    KubernetesOptions options = world.launching();
    options.devices_of_node = devices_of_each;
    return {.launcher = kubernetes_launcher(options),
            .devices = 2,
            .over_nodes = SeveralNodes{{"{rank}/{nodes}", "at-{leader}"}, {"--headless"}}};
}

std::vector<std::string> engine_of_two(const std::string& leads, const std::string& follows) {
    return {"/bin/sh", "-c",
            "echo \"node $*\"; case \"$*\" in *--headless*) " + follows + " ;; *) " + leads +
                " ;; esac",
            "x"};
}
const std::string serves_on = "trap 'exit 3' TERM; while :; do sleep 0.1; done";

Failure failure_of(const LauncherWorld& world, Launched& one) {
    const bool over = one.process().wait(90s);
    INFO(one.said());
    REQUIRE(over);
    return present(world.launcher->ended(one.launch(), one.process().exit_code().value_or(0),
                                         one.process().lines()));
}

}  // namespace

TEST_CASE(
    "cluster: an engine over two nodes starts on both, and ends with either, whoever ends it") {
    const KubernetesWorld world(2, devices_of_each);
    if (!world.works()) return;
    const LauncherWorld both = over_both(world);
    world.create({{"apiVersion", "scheduling.k8s.io/v1"},
                  {"kind", "PriorityClass"},
                  {"metadata", {{"name", "urgent"}}},
                  {"value", 1000}});
    REQUIRE(both.launcher->trouble("") == "");
    {  // it starts, on both, and goes
        const auto begin = std::chrono::steady_clock::now();
        Launched one(both, engine_of_two(serves_on, serves_on));
        REQUIRE(comes_true([&] { return has(one.said(), "node 0/2 at-198.18."); }, 60));
        WARN("an engine over two nodes began " << seconds_since(begin) << " s after its launch");
        LaunchedAt at;
        REQUIRE(comes_true([&] { return (at = both.launcher->place(one.launch())).waits.empty(); },
                           30));
        CHECK(has(one.said(), "at-" + at.host + "\n"));
        const std::string nodes = at.place.at("node");
        CHECK((nodes == "node-1, node-2" || nodes == "node-2, node-1"));
        CHECK_FALSE(both.launcher->lost(one.launch()));
        (void)one.end(20s);
        CHECK(both.launcher->remove(one.launch()) == "");
        CHECK(one.comes_to_nothing());
    }
    {  // the other one fails
        Launched one(both,
                     engine_of_two(serves_on, "sleep 2; echo CUDA out of memory there; exit 41"));
        const Failure failure = failure_of(both, one);
        CHECK(failure.kind == FailureKind::other);
        CHECK(has(failure.message,
                  "rank 1 of the engine, ended with exit code 41; its last line: CUDA out of "
                  "memory there"));
        CHECK(one.comes_to_say("\nCUDA out of memory there\n"));
        CHECK(both.launcher->remove(one.launch()) == "");
    }
    {  // the other one is preempted
        Launched one(both, engine_of_two(serves_on, serves_on));
        REQUIRE(comes_true([&] { return has(one.said(), "node 0/2"); }, 60));
        const std::string other =
            world.asked({"get", "pods", "--selector=batch.kubernetes.io/job-completion-index=1",
                         "--output=jsonpath={.items[0].spec.nodeName}"});
        nlohmann::json urgent = KubernetesWorld::pod("urgent", "exit 0", {{"nvidia.com/gpu", "1"}});
        urgent["spec"]["priorityClassName"] = "urgent";
        urgent["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", other}};
        world.create(urgent);
        const Failure failure = failure_of(both, one);
        CHECK(failure.kind == FailureKind::infrastructure);
        CHECK(has(failure.message, "was preempted"));
        CHECK(both.launcher->remove(one.launch()) == "");
        (void)world.kubectl({"delete", "pod", "urgent"});
    }
    {  // somebody deletes the other one
        Launched one(both, engine_of_two(serves_on, serves_on));
        REQUIRE(comes_true([&] { return has(one.said(), "node 0/2"); }, 60));
        (void)world.kubectl({"delete", "pods",
                             "--selector=batch.kubernetes.io/job-completion-index=1",
                             "--wait=false"});
        const Failure failure = failure_of(both, one);
        CHECK(failure.kind == FailureKind::infrastructure);
        CHECK(has(failure.message, "deleted"));
        CHECK(both.launcher->remove(one.launch()) == "");
    }
    const bool nothing = comes_true([&] { return world.left().empty(); });
    INFO(world.left());
    CHECK(nothing);
}

TEST_CASE("cluster: a study measures an engine on one node and over two") {
    const KubernetesWorld world(2, devices_of_each);
    if (!world.works()) return;
    const std::vector<std::string> client = world.client();
    DeployedStudy::Text text;
    text.space = "{tensor_parallel_size: {choice: [1, 2], default: 1}}";
    text.workload =
        "{kind: random, input_tokens: 64, output_tokens: 16}, requests: 16, arrival: {concurrency: "
        "4}";
    text.deploy = "kubernetes: {template: pod.json, reach: pod, program: [\"" + client[0] +
                  "\", \"" + client[1] +
                  "\"]}, ready_within: 60s, stop_within: 8s, stall_timeout: 20s, trial_within: "
                  "120s, warm_up: 1, environment: "
                  "{SIMENGINE_OPTIONS: \"--start-scale 25 --time-scale 12\"}";
    text.more = "budget: {trials: 2}\naudit: off\nhardware: {device: chip.yaml, count: 2}\n";
    const DeployedStudy study(text);
    write_file(study.folder() / "pod.json", KubernetesWorld::pod_template().dump());
    write_file(
        study.folder() / "chip.yaml",
        "hardware: chip-of-one\nalso: []\narchitecture: hopper\nmemory_bytes: "
        "8.5e+10\nmemory_bandwidth_bytes_per_second: 3.35e+12\n"
        "flops_per_second: {bf16: 9.894e+14}\nlink_bytes_per_second: 9.0e+11\ndevices_per_node: 1\n"
        "network_bytes_per_second: 5.0e+10\nsource: a test's\n");
    const Ran ended = study.run();
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    const std::vector<Trial> trials = study.trials();
    REQUIRE(trials.size() == 2);
    for (const Trial& trial : trials) {
        REQUIRE(trial.outcome);
        const auto* failure = std::get_if<Failure>(&*trial.outcome);
        INFO((failure != nullptr ? failure->message : ""));
        REQUIRE(failure == nullptr);
        const bool over = trial.configuration.integer("tensor_parallel_size") == 2;
        CHECK(has(std::get<Measurement>(*trial.outcome).place.at("node"), ", ") == over);
    }
    const bool nothing = comes_true([&] { return world.left().empty(); });
    INFO(world.left());
    CHECK(nothing);
}
