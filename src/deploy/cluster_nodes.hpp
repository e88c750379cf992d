// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace servetune {

/// A node as far as it decides whether a pod fits.
struct ClusterNode {
    std::string name{};
    std::map<std::string, std::string> labels{};
    std::map<std::string, std::string> allocatable{};
    std::vector<std::string> taints{};  ///< KEY=VALUE:EFFECT, those that keep pods away
    bool unschedulable = false;
};

/// What `kubectl get nodes -o jsonpath=...` is asked for, and its answer as nodes. A node's whole
/// object has its images too: hundreds of nodes would be megabytes.
inline constexpr const char* nodes_jsonpath =
    R"(jsonpath={range .items[*]}{.metadata.name}{"\t"}{.metadata.labels}{"\t"}{.status.allocatable}{"\t"}{.spec.taints}{"\t"})"
    R"({.spec.unschedulable}{"\n"}{end})";
[[nodiscard]] std::vector<ClusterNode> nodes_in(const std::string& answer);

/// Why not enough nodes would take such pods now, for a person; empty: they would, as far as
/// labels, taints and devices say. `pod`: the spec of a pod; `devices`: the resource, `count` of
/// it; `wanted`: so many nodes, a pod each.
[[nodiscard]] std::string why_no_node_fits(const std::vector<ClusterNode>& nodes,
                                           const nlohmann::json& pod, const std::string& devices,
                                           std::int64_t count, std::size_t wanted = 1);

/// The same of its labels alone, as JSON; none where it is no such text.
[[nodiscard]] std::map<std::string, std::string> labels_in(const std::string& json);

/// Adds where another part of a server runs: what differs is listed.
void add_place(Place& all, const Place& more);

/// What of a node can change the speed of an engine: its name, its type and the product of its
/// devices, by the labels of Kubernetes ("Well-Known Labels"), NVIDIA's GPU feature discovery and
/// AMD's node labeller. Names begin with `node`.
[[nodiscard]] std::map<std::string, std::string> node_facts(
    const std::string& name, const std::map<std::string, std::string>& labels);

}  // namespace servetune
