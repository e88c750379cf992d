// SPDX-License-Identifier: Apache-2.0
// The launcher for Kubernetes on a real cluster.
#include "contract/launcher_contract.hpp"
#include "support/kubernetes_world.hpp"
#include "support/remote_engine.hpp"
#include "support/test.hpp"

#include <memory>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

TEST_CASE("cluster: jobs of Kubernetes keep the launchers' contract") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    for (const std::string reach : {"pod", "forward"}) {
        INFO(reach);
        check_launcher({world.launcher(reach), KubernetesWorld::image});
        CHECK(comes_true([&] { return world.left().empty(); }));
    }
}

TEST_CASE(
    "cluster: an engine in a pod is measured at its address, through the API server and at its "
    "node's") {
    const KubernetesWorld world(1);
    if (!world.works()) return;
    for (const std::string reach : {"pod", "forward", "node"}) {
        const auto launcher = world.launcher(reach);
        RemoteEngine engine(launcher);
        engine.in_image();
        const Outcome outcome = engine.measure();
        INFO((std::get_if<Failure>(&outcome) != nullptr ? std::get<Failure>(outcome).message : "")
             << engine.phases());
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        CHECK(std::get<Measurement>(outcome).metrics.at("output_tokens_per_second").value > 100);
        CHECK(launcher->leftovers(engine.mark()).empty());
        CHECK(comes_true([&] { return world.left().empty(); }));
    }
}

TEST_CASE("cluster: two trials of a study are never on one node, and a third waits for its turn") {
    const KubernetesWorld world(2);
    if (!world.works()) return;
    const LauncherWorld launching{world.launcher(), KubernetesWorld::image};
    const TemporaryFolder study;
    const std::vector<std::string> words{"/bin/sh", "-c", "echo runs; while :; do sleep 0.1; done"};
    const auto state_of = [&](const Launched& one) {
        std::string result;
        return comes_true([&] {
            const LaunchedAt at = launching.launcher->place(one.launch());
            result = at.waits.empty() ? "at " + at.host : at.waits;
            return at.waits.empty() || has(at.waits, "anti-affinity");
        })
                   ? result
                   : "neither: " + result;
    };
    auto first = std::make_unique<Launched>(launching, words, std::map<std::string, std::string>{},
                                            study.path());
    const Launched second(launching, words, {}, study.path());
    const std::string one = state_of(*first), two = state_of(second);
    CHECK(one.starts_with("at 198.18."));
    CHECK(two.starts_with("at 198.18."));
    CHECK(one.substr(0, 12) != two.substr(0, 12));  // each node has a network of its own
    const Launched third(launching, words, {}, study.path());
    CHECK(has(state_of(third), "anti-affinity"));
    first.reset();
    CHECK(comes_true([&] { return state_of(third).starts_with("at "); }));
}
