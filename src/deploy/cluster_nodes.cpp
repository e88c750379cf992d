// SPDX-License-Identifier: Apache-2.0
#include "cluster_nodes.hpp"

#include "base/nesting.hpp"
#include "host/kept_output.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace servetune {
namespace {

using Json = nlohmann::json;

std::map<std::string, std::string> texts_of(const Json& object) {
    std::map<std::string, std::string> result;
    if (object.is_object())
        for (const auto& [name, value] : object.items())
            if (value.is_string()) result[name] = value.get<std::string>();
    return result;
}

std::vector<std::string> tab_fields_of(const std::string& line) {
    std::vector<std::string> result(1);
    for (const char c : line)
        if (c == '\t') result.emplace_back();
        else result.back() += c;
    return result;
}

std::int64_t count_in(const std::map<std::string, std::string>& allocatable,
                      const std::string& resource) {
    const auto found = allocatable.find(resource);
    std::int64_t result = 0;
    if (found != allocatable.end())
        (void)std::from_chars(found->second.data(), found->second.data() + found->second.size(),
                              result);
    return result;
}

/// A toleration's way to name taints: "Taints and Tolerations". `taint`: KEY=VALUE:EFFECT.
bool tolerates(const Json& toleration, const std::string& taint) {
    const auto colon = taint.rfind(':');
    const std::string pair = taint.substr(0, colon);
    const auto equals = pair.find('=');
    const std::string key = toleration.value("key", "");
    const std::string effect = toleration.value("effect", "");
    if (!effect.empty() && effect != taint.substr(colon + 1)) return false;
    if (key.empty()) return toleration.value("operator", "") == "Exists";
    if (key != pair.substr(0, equals)) return false;
    return toleration.value("operator", "Equal") == "Exists" ||
           toleration.value("value", "") == pair.substr(equals + 1);
}

std::string why_not(const ClusterNode& node, const Json& pod) {
    if (node.unschedulable) return "cordoned";
    for (const auto& [name, wanted] : texts_of(pod.value("nodeSelector", Json()))) {
        const auto found = node.labels.find(name);
        if (found == node.labels.end() || found->second != wanted)
            return "no label " + name + "=" + wanted +
                   (found == node.labels.end() ? "" : ", but " + found->second);
    }
    const Json tolerations = pod.value("tolerations", Json::array());
    for (const std::string& taint : node.taints)
        if (std::none_of(tolerations.begin(), tolerations.end(),
                         [&](const Json& one) { return tolerates(one, taint); }))
            return "the taint " + taint + ", which the template does not tolerate";
    return "";
}

}  // namespace

std::vector<ClusterNode> nodes_in(const std::string& answer) {
    std::vector<ClusterNode> result;
    for (const std::string& line : lines_of(answer)) {
        const std::vector<std::string> fields = tab_fields_of(line);
        constexpr std::size_t all = 5;
        if (fields.size() != all || fields[0].empty()) continue;  // a warning of the client
        ClusterNode node{.name = fields[0],
                         .labels = texts_of(shallow_json<Json>(fields[1])),
                         .allocatable = texts_of(shallow_json<Json>(fields[2])),
                         .unschedulable = fields[4] == "true"};
        const Json taints = shallow_json<Json>(fields[3]);
        if (taints.is_array())
            for (const Json& one : taints)
                if (const std::string effect = one.value("effect", "");
                    effect != "PreferNoSchedule")
                    node.taints.push_back(one.value("key", "") + "=" + one.value("value", "") +
                                          ":" + effect);
        result.push_back(std::move(node));
    }
    return result;
}

std::map<std::string, std::string> labels_in(const std::string& json) {
    return texts_of(shallow_json<Json>(json));
}

std::string why_no_node_fits(const std::vector<ClusterNode>& nodes, const nlohmann::json& pod,
                             const std::string& devices, std::int64_t count, std::size_t wanted) {
    std::int64_t most = 0;
    std::size_t fitting = 0;
    std::map<std::string, std::size_t> reasons;
    for (const ClusterNode& node : nodes) {
        const std::string why = why_not(node, pod);
        if (!why.empty()) {
            ++reasons[why];
            continue;
        }
        const std::int64_t has = devices.empty() ? 0 : count_in(node.allocatable, devices);
        if (devices.empty() || has >= count) {
            if (++fitting == wanted) return "";
            continue;
        }
        most = std::max(most, has);
        ++reasons["too few " + devices];
    }
    std::string result = (fitting == 0 ? "none" : std::to_string(fitting)) + " of the " +
                         std::to_string(nodes.size()) + " nodes of the cluster would take " +
                         (wanted > 1 ? "a pod of a trial over " + std::to_string(wanted) + " nodes"
                                     : std::string("a trial"));
    if (!devices.empty() && count > 0)
        result += " of " + std::to_string(count) + " " + devices +
                  (most > 0 ? " (the largest has " + std::to_string(most) + ")" : std::string());
    std::string listed;
    for (const auto& [why, times] : reasons)
        listed += (listed.empty() ? ": " : "; ") + std::to_string(times) +
                  (times == 1 ? " node: " : " nodes: ") + why;
    return result + listed;
}

void add_place(Place& all, const Place& more) {
    for (const auto& [what, value] : more)
        if (std::string& known = all[what]; known.empty()) known = value;
        else if ((", " + known + ", ").find(", " + value + ", ") == std::string::npos)
            known += ", " + value;
}

std::map<std::string, std::string> node_facts(const std::string& name,
                                              const std::map<std::string, std::string>& labels) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> known{
        {{"nvidia.com/gpu.product", "node devices"},
         {"amd.com/gpu.product-name", "node devices"},
         {"node.kubernetes.io/instance-type", "node type"},
         {"nvidia.com/mig.config", "node MIG"}}};
    std::map<std::string, std::string> result{{name_of_node, name}};
    for (const auto& [label, fact] : known)
        if (const auto found = labels.find(std::string(label));
            found != labels.end() && !found->second.empty())
            result.emplace(fact, found->second);
    return result;
}

}  // namespace servetune
