// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a real Kubernetes while a trial runs, and before the first.
#include "support/kubernetes_world.hpp"
#include "support/remote_engine.hpp"
#include "support/test.hpp"

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// In pods of the cluster, with a load test that is long enough to be disturbed.
struct PodEngine : RemoteEngine {
    PodEngine(const KubernetesWorld& world, const nlohmann::json& pod, int requests = 4000,
              const std::string& reach = "pod")
        : RemoteEngine(world.launcher(reach, pod), requests) {
        in_image();
        options.measure.load.stall_timeout_seconds = 5;
    }
    /// What came of it, given up after that time or once a phase says `enough`.
    std::string measured_until(const std::string& enough, double seconds) {
        std::stop_source stop;
        std::string message;
        std::thread measuring([&] { message = measured(stop.get_token()); });
        (void)comes_true([&] { return has(phases(), enough); }, seconds);
        stop.request_stop();
        measuring.join();
        return phases() + message;
    }
};

nlohmann::json on_node(int number) {
    return KubernetesWorld::pod_template(
        {{"nodeSelector", {{"kubernetes.io/hostname", "node-" + std::to_string(number)}}}});
}

void is_empty(const KubernetesWorld& world) {
    const bool empty = comes_true([&] { return world.left().empty(); });
    INFO(world.left());
    CHECK(empty);
}

}  // namespace

TEST_CASE(
    "cluster: the API server, containerd or the kubelet is killed and comes back: the trial is "
    "measured") {
    KubernetesWorld world(1);
    if (!world.works()) return;
    for (const std::string part : {"api", "containerd-1", "kubelet-1"}) {
        PodEngine engine(world, KubernetesWorld::pod_template(), 1000);
        const std::string message = engine.disturbed([&] {
            world.kill(part);
            std::this_thread::sleep_for(4s);
            world.start(part);
        });
        INFO(part << ": " << message << "\n" << engine.phases());
        CHECK(message == "measured");
        is_empty(world);
    }
    // The same behind the API server: requests break with it, which is not the configuration's
    // fault.
    PodEngine engine(world, KubernetesWorld::pod_template(), 4000, "forward");
    const std::string message = engine.disturbed([&] {
        world.kill("api");
        std::this_thread::sleep_for(4s);
        world.start("api");
    });
    INFO(message << "\n" << engine.phases());
    CHECK(message.starts_with("the machine: "));
    is_empty(world);
}

TEST_CASE(
    "cluster: a trial that is preempted, evicted or deleted, or whose node is gone, is not the "
    "configuration's fault") {
    KubernetesWorld world(2, 1);
    if (!world.works()) return;
    world.create({{"apiVersion", "scheduling.k8s.io/v1"},
                  {"kind", "PriorityClass"},
                  {"metadata", {{"name", "urgent"}}},
                  {"value", 1000}});
    {
        PodEngine engine(world, on_node(1));
        const std::string message = engine.disturbed([&] {
            nlohmann::json urgent =
                KubernetesWorld::pod("urgent", "exit 0", {{"nvidia.com/gpu", "1"}});
            urgent["spec"]["nodeSelector"] = on_node(1)["spec"]["nodeSelector"];
            urgent["spec"]["priorityClassName"] = "urgent";
            world.create(urgent);
        });
        INFO(message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "was preempted"));
        (void)world.kubectl({"delete", "pod", "urgent"});
        is_empty(world);
    }
    {
        PodEngine engine(world, on_node(1));
        const std::string message = engine.disturbed([&] {
            const std::string pod =
                world.asked({"get", "pods", "--output=jsonpath={.items[0].metadata.name}"});
            world.create_at(
                "/api/v1/namespaces/tuning/pods/" + pod + "/eviction",
                {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", pod}}}});
        });
        INFO(message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "was evicted"));
        is_empty(world);
    }
    for (const std::string kind : {"pods", "jobs"}) {
        PodEngine engine(world, on_node(1));
        const std::string message = engine.disturbed([&] {
            (void)world.kubectl({"delete", kind, "--all", "--wait=false"});
        });
        INFO(kind << ": " << message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "deleted"));
        is_empty(world);
    }
    {
        PodEngine engine(world, on_node(2));
        const std::string message = engine.disturbed([&] { world.kill("node-2"); });
        INFO(message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "node"));
        CHECK(has(message, "node-2"));
    }
}

TEST_CASE("cluster: an engine that needs more memory than its pod may have ran out of memory") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    PodEngine engine(world, KubernetesWorld::pod_template(
                                {}, {{"resources", {{"limits", {{"memory", "60Mi"}}}}}}));
    engine.options.deploy.environment["GREEDY"] = "serve";
    const std::string message = engine.measured();
    INFO(message);
    CHECK(message.starts_with("out_of_memory: "));
    CHECK(has(message, "60Mi"));
    is_empty(world);
}

TEST_CASE("cluster: what is missing is said before the first trial") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    const auto trouble = [&](const std::vector<std::string>& more,
                             const nlohmann::json& pod = KubernetesWorld::pod_template(),
                             const std::string& account = "tuner") {
        return world.launcher("pod", pod, more, account)->trouble("");
    };
    CHECK(trouble({}).empty());
    CHECK(has(trouble({"context nowhere"}), "nowhere"));
    CHECK(has(trouble({"namespace elsewhere"}), "elsewhere"));
    CHECK(has(trouble({}, KubernetesWorld::pod_template(), "nobody"), "login"));
    CHECK(has(trouble({}, KubernetesWorld::pod_template(), "stranger"), "create jobs.batch"));
    CHECK(has(trouble({}, KubernetesWorld::pod_template({{"nodeSelektor", {{"a", "b"}}}})),
              "nodeSelektor"));
    world.create(
        {{"apiVersion", "v1"},
         {"kind", "ResourceQuota"},
         {"metadata", {{"name", "small"}}},
         {"spec", {{"hard", {{"requests.nvidia.com/gpu", "0"}, {"count/jobs.batch", "0"}}}}}});
    CHECK(has(trouble({}), "exceeded quota: small"));
    (void)world.kubectl({"delete", "resourcequota", "small"});
    is_empty(world);
}

TEST_CASE(
    "cluster: a pod that cannot start waits with the reason, and its trial stops the run where it "
    "never will") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    {
        PodEngine engine(world, KubernetesWorld::pod_template(
                                    {{"nodeSelector", {{"nvidia.com/gpu.product", "h100"}}}}));
        const std::string message = engine.measured_until("node affinity/selector", 20);
        INFO(message);
        CHECK(has(message, "waits"));
        CHECK(has(message, "node affinity/selector"));
        is_empty(world);
    }
    {
        PodEngine engine(
            world, KubernetesWorld::pod_template({}, {{"image", "localhost/nobody-has-it:1"}}));
        const std::string message = engine.measured_until("localhost/nobody-has-it:1", 20);
        INFO(message);
        CHECK(has(message, "its image cannot be pulled"));
        is_empty(world);
    }
    {  // the Job is there, but no pod can be
        PodEngine engine(world,
                         KubernetesWorld::pod_template({{"priorityClassName", "nobody-made-it"}}));
        const std::string message = engine.measured_until("nobody-made-it", 30);
        INFO(message);
        CHECK(has(message, "no PriorityClass with name nobody-made-it was found"));
        is_empty(world);
    }
    {  // or may be
        world.create({{"apiVersion", "v1"},
                      {"kind", "ResourceQuota"},
                      {"metadata", {{"name", "small"}}},
                      {"spec", {{"hard", {{"requests.nvidia.com/gpu", "0"}}}}}});
        PodEngine engine(world, KubernetesWorld::pod_template());
        const std::string message = engine.measured_until("exceeded quota", 30);
        INFO(message);
        CHECK(has(message, "exceeded quota: small"));
        (void)world.kubectl({"delete", "resourcequota", "small"});
        is_empty(world);
    }
    {
        PodEngine engine(world, KubernetesWorld::pod_template(
                                    {}, {{"envFrom", {{{"secretRef", {{"name", "hub-token"}}}}}}}));
        const std::string message = engine.measured();
        INFO(message);
        CHECK(message.starts_with("the machine: "));
        CHECK(has(message, "secret \"hub-token\" not found"));
        is_empty(world);
    }
}

TEST_CASE("cluster: pods that cannot be reached are told from engines that do not answer") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    PodEngine engine(world, KubernetesWorld::pod_template(), 40);
    engine.options.deploy.ready_within_seconds = 15;
    // The addresses that its first pods get.
    REQUIRE(
        ran({"/bin/sh", "-c", "exec ip route add unreachable 198.18.1.0/25"}, world.work()).code ==
        0);
    const std::string message = engine.measured();
    INFO(message << engine.phases());
    CHECK(message.starts_with("the machine: "));
    CHECK(has(message, "reach"));
    is_empty(world);
}
