// SPDX-License-Identifier: Apache-2.0
// What a real Kubernetes says of its pods.
#include "deploy/pod_state.hpp"
#include "support/kubernetes_world.hpp"
#include "support/test.hpp"

#include <set>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

/// The state that a pod of the cluster comes to, once `is` says that it is the one.
template <class Is>
PodState comes_to(const KubernetesWorld& world, const std::string& name, const Is& is) {
    PodState state;
    nlohmann::json pod;
    const bool came = comes_true(
        [&] {
            pod = world.get("pod", name);
            if (!pod.is_null()) state = pod_state_of(pod, "engine");
            return !pod.is_null() && is(state);
        },
        60);
    INFO(name << ": " << pod.dump(1));
    CHECK(came);
    return state;
}
PodState ended(const KubernetesWorld& world, const std::string& name) {
    return comes_to(world, name,
                    [](const PodState& state) { return state.phase == PodState::Phase::ended; });
}
PodState known(const KubernetesWorld& world, const std::string& name) {
    return comes_to(world, name, [](const PodState& state) { return state.failure.has_value(); });
}

}  // namespace

TEST_CASE("cluster: what the status of a live pod says is read as what happened to it") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    const nlohmann::json devices = {{"nvidia.com/gpu", "1"}};

    // All at once, since each waits mostly.
    world.create(KubernetesWorld::pod("ends-well", "exit 0"));
    world.create(KubernetesWorld::pod("breaks", "echo bad flag; exit 41"));
    world.create(KubernetesWorld::pod("too-large", "tail /dev/zero", {{"memory", "20Mi"}}));
    nlohmann::json pod = KubernetesWorld::pod("no-program", "");
    pod["spec"]["containers"][0]["command"] = {"/no/such/engine", "serve"};
    world.create(pod);
    pod = KubernetesWorld::pod("no-image", "");
    pod["spec"]["containers"][0]["image"] = "localhost/nobody-has-it:1";
    world.create(pod);
    pod["metadata"]["name"] = "bad-name";
    pod["spec"]["containers"][0]["image"] = "Localhost/UPPER:1";
    world.create(pod);
    pod = KubernetesWorld::pod("no-secret", "");
    pod["spec"]["containers"][0]["envFrom"] = {{{"secretRef", {{"name", "hub-token"}}}}};
    world.create(pod);
    pod = KubernetesWorld::pod("no-volume", "");
    pod["spec"]["volumes"] = {
        {{"name", "models"}, {"persistentVolumeClaim", {{"claimName", "models"}}}}};
    world.create(pod);
    pod = KubernetesWorld::pod("no-time", "sleep 60");
    pod["spec"]["activeDeadlineSeconds"] = 2;
    world.create(pod);
    pod = KubernetesWorld::pod("no-node", "sleep 60", devices);
    pod["spec"]["nodeSelector"] = {{"nvidia.com/gpu.product", "h100"}};
    world.create(pod);
    pod = KubernetesWorld::pod("before", "sleep 60");
    pod["spec"]["initContainers"] = {{{"name", "fetch"},
                                      {"image", KubernetesWorld::image},
                                      {"command", {"/bin/sh", "-c", "echo no such model; exit 3"}},
                                      {"terminationMessagePolicy", "FallbackToLogsOnError"}}};
    world.create(pod);
    world.create(KubernetesWorld::pod("serves", "sleep 100", devices));

    PodState state = ended(world, "ends-well");
    CHECK(state.exit_code == 0);
    CHECK_FALSE(state.failure);
    state = ended(world, "breaks");
    CHECK(state.exit_code == 41);
    CHECK_FALSE(state.failure);  // its log says why
    state = ended(world, "too-large");
    REQUIRE(state.failure);
    CHECK(state.failure->kind == FailureKind::out_of_memory);
    CHECK(has(state.failure->message, "20Mi"));
    state = ended(world, "no-program");
    REQUIRE(state.failure);
    CHECK(state.failure->kind == FailureKind::unsupported);
    CHECK(has(state.failure->message, "/no/such/engine"));
    CHECK(state.hopeless);
    state = known(world, "no-image");
    CHECK(state.phase == PodState::Phase::waits);
    CHECK(state.hopeless);
    CHECK(state.believed_after_seconds >= 60);
    CHECK(has(state.failure->message, "localhost/nobody-has-it:1"));
    state = known(world, "bad-name");
    CHECK(state.hopeless);
    CHECK(state.believed_after_seconds == 0);
    CHECK(has(state.failure->message, "Localhost/UPPER:1"));
    state = known(world, "no-secret");
    CHECK(state.hopeless);
    CHECK(has(state.failure->message, "secret \"hub-token\" not found"));
    state = known(world, "no-volume");
    CHECK(state.hopeless);
    CHECK(has(state.failure->message, "persistentvolumeclaim \"models\" not found"));
    state = ended(world, "no-time");
    REQUIRE(state.failure);
    CHECK(state.failure->kind == FailureKind::infrastructure);
    CHECK(has(state.failure->message, "activeDeadlineSeconds"));
    state = comes_to(world, "no-node",
                     [](const PodState& seen) { return has(seen.why, "node affinity/selector"); });
    CHECK(state.phase == PodState::Phase::waits);
    CHECK_FALSE(state.hopeless);
    state = ended(world, "before");
    REQUIRE(state.failure);
    CHECK(has(state.failure->message, "'fetch' ended with exit code 3"));
    CHECK(has(state.failure->message, "no such model"));
    state = comes_to(world, "serves", [](const PodState& seen) {
        return seen.phase == PodState::Phase::runs && !seen.failure;
    });
    CHECK(state.node == "node-1");
    CHECK(state.pod_ip.starts_with("198.18.1."));
    CHECK(state.host_ip == "192.0.2.1");
    CHECK_FALSE(state.failure);
}

TEST_CASE(
    "cluster: a pod that is preempted, evicted, deleted or loses its node is the cluster's fault") {
    KubernetesWorld world(2, 1);
    if (!world.works()) return;
    const nlohmann::json devices = {{"nvidia.com/gpu", "1"}};
    const auto runs = [](const PodState& seen) {
        return seen.phase == PodState::Phase::runs && !seen.failure;
    };
    const auto on = [&](nlohmann::json pod, int node) {
        pod["spec"]["nodeSelector"] = {{"kubernetes.io/hostname", "node-" + std::to_string(node)}};
        pod["spec"]["tolerations"] = {{{"key", "node.kubernetes.io/unreachable"},
                                       {"operator", "Exists"},
                                       {"effect", "NoExecute"},
                                       {"tolerationSeconds", 60}}};
        pod["spec"]["terminationGracePeriodSeconds"] = 4;
        return pod;
    };
    world.create({{"apiVersion", "scheduling.k8s.io/v1"},
                  {"kind", "PriorityClass"},
                  {"metadata", {{"name", "urgent"}}},
                  {"value", 1000}});
    const std::string deaf =
        "trap '' TERM; while :; do sleep 1; done";  // it is seen while it takes its grace
    for (const auto& [name, node] : std::map<std::string, int>{{"preempted", 1}, {"lost", 2}}) {
        world.create(on(KubernetesWorld::pod(name, deaf, devices), node));
        (void)comes_to(world, name, runs);
    }
    for (const char* name : {"evicted", "deleted"}) {
        world.create(on(KubernetesWorld::pod(name, deaf), 1));
        (void)comes_to(world, name, runs);
    }

    nlohmann::json urgent = on(KubernetesWorld::pod("urgent", "exit 0", devices), 1);
    urgent["spec"]["priorityClassName"] = "urgent";
    world.create(urgent);
    PodState state = known(world, "preempted");
    CHECK(state.failure->kind == FailureKind::infrastructure);
    CHECK(has(state.failure->message, "was preempted"));

    world.create_at(
        "/api/v1/namespaces/tuning/pods/evicted/eviction",
        {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", "evicted"}}}});
    state = known(world, "evicted");
    CHECK(state.failure->kind == FailureKind::infrastructure);
    CHECK(has(state.failure->message, "was evicted"));

    (void)world.kubectl({"delete", "pod", "deleted", "--wait=false"});
    state = comes_to(world, "deleted", [](const PodState& seen) { return seen.deleted; });
    CHECK(state.deleted);

    world.kill("kubelet-2");
    state = known(world, "lost");
    CHECK(state.failure->kind == FailureKind::infrastructure);
    CHECK(has(state.failure->message, "a node that does not answer: node-2"));
}
