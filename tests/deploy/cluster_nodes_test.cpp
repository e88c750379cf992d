// SPDX-License-Identifier: Apache-2.0
// Which nodes of a cluster would take a trial, and what of a node is kept with it.
#include "deploy/cluster_nodes.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// As kubectl 1.37 answers `nodes_jsonpath`.
const std::string nodes_answer =
    "Warning: something\n"
    "a\t{\"gpu\":\"h100\"}\t{\"cpu\":\"2\",\"nvidia.com/gpu\":\"8\"}\t\t\n"
    "b\t{\"gpu\":\"h100\"}\t{\"nvidia.com/"
    "gpu\":\"4\"}\t[{\"effect\":\"NoSchedule\",\"key\":\"gpu\",\"value\":\"yes\"}]\t\n"
    "c\t{\"gpu\":\"l4\"}\t{\"nvidia.com/"
    "gpu\":\"1\"}\t[{\"effect\":\"PreferNoSchedule\",\"key\":\"old\"}]\ttrue\n"
    "d\t{}\t{\"cpu\":\"64\"}\t\t\n";

std::string fits(const std::string& pod, std::int64_t count,
                 const std::string& devices = "nvidia.com/gpu") {
    return why_no_node_fits(nodes_in(nodes_answer), nlohmann::json::parse(pod), devices, count);
}

}  // namespace

TEST_CASE("cluster nodes: a node fits by its labels, its taints and its devices") {
    REQUIRE(nodes_in(nodes_answer).size() == 4);
    CHECK(fits("{}", 8) == "");
    CHECK(fits("{}", 0, "") == "");
    CHECK(fits("{}", 9) ==
          "none of the 4 nodes of the cluster would take a trial of 9 nvidia.com/gpu (the largest "
          "has 8): 1 node: cordoned; "
          "1 node: the taint gpu=yes:NoSchedule, which the template does not tolerate; 2 nodes: "
          "too few nvidia.com/gpu");
    const auto for_pods = [](std::size_t wanted) {
        return why_no_node_fits(nodes_in(nodes_answer), nlohmann::json::object(), "nvidia.com/gpu",
                                8, wanted);
    };
    CHECK(for_pods(1) == "");
    CHECK(for_pods(3) ==
          "1 of the 4 nodes of the cluster would take a pod of a trial over 3 nodes of 8 "
          "nvidia.com/gpu: 1 node: cordoned; "
          "1 node: the taint gpu=yes:NoSchedule, which the template does not tolerate; 1 node: too "
          "few nvidia.com/gpu");
    CHECK(has(fits(R"({"nodeSelector": {"gpu": "a100"}})", 1),
              "2 nodes: no label gpu=a100, but h100"));
    CHECK(has(fits(R"({"nodeSelector": {"gpu": "a100"}})", 1), "1 node: no label gpu=a100;"));
    CHECK(has(fits(R"({"nodeSelector": {"zone": "x"}})", 1), "no label zone=x"));
    CHECK(why_no_node_fits({}, nlohmann::json::object(), "nvidia.com/gpu", 1) ==
          "none of the 0 nodes of the cluster would take a trial of 1 nvidia.com/gpu");
}

TEST_CASE("cluster nodes: tolerations are matched as Kubernetes does") {
    const auto only = [](const std::string& toleration) {
        const std::vector<ClusterNode> nodes{
            {.name = "n", .allocatable = {{"g/g", "1"}}, .taints = {"gpu=yes:NoSchedule"}}};
        return why_no_node_fits(nodes,
                                nlohmann::json::parse("{\"tolerations\": [" + toleration + "]}"),
                                "g/g", 1)
            .empty();
    };
    CHECK_FALSE(only(""));
    CHECK(only(R"({"key": "gpu", "operator": "Exists"})"));
    CHECK(only(R"({"operator": "Exists"})"));
    CHECK(only(R"({"key": "gpu", "value": "yes"})"));
    CHECK(only(R"({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"})"));
    CHECK_FALSE(only(R"({"key": "gpu", "value": "no"})"));
    CHECK_FALSE(only(R"({"key": "gpu", "operator": "Exists", "effect": "NoExecute"})"));
    CHECK_FALSE(only(R"({"key": "other", "operator": "Exists"})"));
}

TEST_CASE("cluster nodes: what can change an engine's speed is kept of a node") {
    using Facts = std::map<std::string, std::string>;
    CHECK(node_facts("n1", {}) == Facts{{"node", "n1"}});
    CHECK(node_facts("n1", {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                            {"node.kubernetes.io/instance-type", "p5.48xlarge"},
                            {"kubernetes.io/arch", "amd64"}}) ==
          Facts{{"node", "n1"},
                {"node devices", "NVIDIA-H100-80GB-HBM3"},
                {"node type", "p5.48xlarge"}});
}
