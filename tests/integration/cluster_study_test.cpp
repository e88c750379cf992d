// SPDX-License-Identifier: Apache-2.0
// Whole studies whose trials are pods of a real Kubernetes.
#include "base/files.hpp"
#include "support/deployed_study.hpp"
#include "support/kubernetes_world.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <variant>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// Each configuration once, `workers` at a time; of one, if any, the engine takes all memory.
class StudyInPods {
public:
    StudyInPods(const KubernetesWorld& world, int configurations, int workers,
                const nlohmann::json& pod, int greedy = 0)
        : world_(world), study_(text(world, configurations, workers, greedy)) {
        write_file(study_.folder() / "pod.json", pod.dump());
    }
    [[nodiscard]] std::vector<std::string> words() const {
        return study_.words("run", {"--quiet"});
    }
    [[nodiscard]] const DeployedStudy& study() const { return study_; }
    [[nodiscard]] std::size_t told() const {
        const std::vector<Trial> trials = trials_so_far();
        return std::size_t(count_if(trials, [](const Trial& one) { return one.told(); }));
    }
    [[nodiscard]] std::vector<Trial> trials_so_far() const {
        return test::trials_so_far(study_.directory());
    }
    /// Names of nodes with a trial that runs.
    [[nodiscard]] std::string nodes_in_use() const {
        return world_.asked({"get", "pods", "--field-selector=status.phase=Running",
                             "--output=jsonpath={range .items[*]}{.spec.nodeName}{\"\\n\"}{end}"});
    }

private:
    static DeployedStudy::Text text(const KubernetesWorld& world, int configurations, int workers,
                                    int greedy) {
        DeployedStudy::Text result;
        std::string values;
        for (int i = 0; i < configurations; ++i)
            values += (i == 0 ? "" : ", ") + std::to_string(8 + i);
        result.space = "{max_num_seqs: {choice: [" + values + "], default: 8}}";
        result.workload =
            "{kind: random, input_tokens: 64, output_tokens: 16}, requests: 16, arrival: "
            "{concurrency: 4}";
        const std::vector<std::string> client = world.client();
        result.deploy =
            "kubernetes: {template: pod.json, reach: pod, program: [\"" + client[0] + "\", \"" +
            client[1] +
            "\"]}, ready_within: 60s, stop_within: 8s, stall_timeout: 20s, trial_within: 120s, "
            "warm_up: 1, workers: " +
            std::to_string(workers) +
            ", environment: {SIMENGINE_OPTIONS: \"--start-scale 25 --time-scale 12\"" +
            (greedy > 0 ? ", GREEDY: \"--max-num-seqs=" + std::to_string(greedy) + "\"" : "") + "}";
        const int compared = 4 * workers;  // where several at once are compared with one alone
        result.more = "budget: {trials: " + std::to_string(configurations + compared) + "}\n";
        return result;
    }
    const KubernetesWorld& world_;
    DeployedStudy study_;
};

}  // namespace

TEST_CASE(
    "cluster: a study in pods of two nodes goes on after a preemption, an end for memory and kill "
    "-9") {
    const KubernetesWorld world(2, 1);
    if (!world.works()) return;
    world.create({{"apiVersion", "scheduling.k8s.io/v1"},
                  {"kind", "PriorityClass"},
                  {"metadata", {{"name", "urgent"}}},
                  {"value", 1000}});
    const StudyInPods in_pods(
        world, 8, 2,
        KubernetesWorld::pod_template({}, {{"resources", {{"limits", {{"memory", "200Mi"}}}}}}),
        12);
    std::vector<Trial> before;
    {
        ChildProcess process(in_pods.words(), in_pods.study().folder());
        // Two trials on two nodes.
        const bool both = comes_true(
            [&] {
                return has(in_pods.nodes_in_use(), "node-1") &&
                       has(in_pods.nodes_in_use(), "node-2");
            },
            60);
        INFO(process.err());
        CHECK(both);
        nlohmann::json urgent = KubernetesWorld::pod("urgent", "exit 0", {{"nvidia.com/gpu", "1"}});
        urgent["spec"]["priorityClassName"] = "urgent";
        world.create(urgent);
        CHECK(comes_true([&] { return in_pods.told() >= 3 || process.wait_at_most(0ms); }, 90));
        REQUIRE(::kill(process.id(), SIGKILL) == 0);
        REQUIRE(process.wait_at_most(5s));
        before = in_pods.trials_so_far();
    }
    CHECK(has(world.asked({"get", "events"}), "Preempted"));
    const Ran ended = ran(in_pods.words(), in_pods.study().folder());
    INFO(ended.out << ended.err);
    CHECK((ended.code == 0 || ended.code == 1));
    const std::vector<Trial> trials = in_pods.trials_so_far();
    REQUIRE(trials.size() >= 8);
    for (const Trial& trial : before)
        if (trial.told()) CHECK(trials[trial.id].outcome == trial.outcome);
    std::size_t for_memory = 0;
    std::vector<Configuration> settled;
    for (const Trial& trial : trials) {
        REQUIRE(trial.told());
        const auto* failure = std::get_if<Failure>(&*trial.outcome);
        if (failure != nullptr && failure->kind == FailureKind::infrastructure) {
            CHECK_FALSE(has(failure->message,
                            "preempted"));  // the comparison of one trial with two at once
            continue;
        }
        if (!contains(settled, trial.configuration)) settled.push_back(trial.configuration);
        if (failure == nullptr) continue;
        INFO(failure->message);
        ++for_memory;
        CHECK(failure->kind == FailureKind::out_of_memory);
        CHECK(has(failure->message, "200Mi"));
    }
    CHECK(for_memory == 1);
    CHECK(settled.size() == 8);
    (void)world.kubectl({"delete", "pod", "urgent"});
    const bool nothing = comes_true([&] { return world.left().empty(); });
    INFO(world.left());
    CHECK(nothing);
    CHECK(world.asked({"get", "configmaps,secrets", "--no-headers", "--output=name"}) ==
          "configmap/kube-root-ca.crt\n");
}

TEST_CASE("cluster: after kill -9 of the tuner its pods go by themselves") {
    const KubernetesWorld world(1, 2);
    if (!world.works()) return;
    const StudyInPods in_pods(world, 8, 1, KubernetesWorld::pod_template());
    ChildProcess process(in_pods.words(), in_pods.study().folder());
    REQUIRE(comes_true([&] { return has(in_pods.nodes_in_use(), "node-1"); }, 60));
    REQUIRE(::kill(process.id(), SIGKILL) == 0);
    const bool nothing = comes_true([&] { return world.left().empty(); }, 60);
    INFO(world.left());
    CHECK(nothing);
}
