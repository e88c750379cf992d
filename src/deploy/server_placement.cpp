// SPDX-License-Identifier: Apache-2.0
// The servers that a configuration starts, and the devices and cores of each.
#include "base/present.hpp"
#include "host/nvidia_smi.hpp"
#include "server_set.hpp"
#include "servetune/engine_evaluator.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <numeric>

namespace servetune {
namespace {

std::string list_of_devices(const std::vector<std::string>& names) {
    std::string result;
    for (const std::string& name : names) result += (result.empty() ? "" : ",") + name;
    return result;
}

}  // namespace

/// Looks once what there is. The devices that the study names, as in CUDA_VISIBLE_DEVICES; empty:
/// none are named.
std::string EngineEvaluator::devices_allowed() {
    if (options_.deploy.launcher && !options_.deploy.launcher->on_this_machine())
        found_ = FoundDevices{};  // what is found here is not there
    if (!found_) {
        found_ = find_devices(options_.deploy.nvidia_smi);
        if (found_->all.size() > 1) topology_ = find_topology(options_.deploy.nvidia_smi);
    }
    const auto named = options_.deploy.environment.find("CUDA_VISIBLE_DEVICES");
    return options_.deploy.gpus.empty() && named != options_.deploy.environment.end()
               ? named->second
               : options_.deploy.gpus;
}

/// Of each server exactly as many devices as its layout takes, so that it never touches one that it
/// was not given; with `fill_devices` as many servers as there is room for. All devices, once,
/// where flags do not decide how many (llama.cpp). No names where nobody knows any.
std::vector<std::vector<std::string>> EngineEvaluator::shares_for(
    const std::vector<ServerGroup>& groups, bool by_flags) {
    std::vector<std::int64_t> counts;
    for (const ServerGroup& group : groups)
        counts.insert(counts.end(), static_cast<std::size_t>(group.count), group.devices);
    const std::int64_t each = std::max<std::int64_t>(counts.front(), 1);
    const Launcher* launcher = options_.deploy.launcher.get();
    const bool fills = options_.fill_devices && groups.size() == 1 && by_flags;
    if (launcher != nullptr && launcher->gives_out_devices())
        return std::vector<std::vector<std::string>>(
            fills ? static_cast<std::size_t>(
                        std::max<std::int64_t>(options_.most_devices.value_or(each) / each, 1))
                  : counts.size());
    const std::string allowed = devices_allowed();
    if (launcher != nullptr && !launcher->on_this_machine() && allowed.empty() &&
        (options_.fill_devices || groups.size() > 1))
        throw UsageError(
            "several servers need to know the devices of the other machine: list them under "
            "`gpus`");
    if (!by_flags && groups.size() == 1) {
        std::vector<std::string> all;
        if (!allowed.empty()) all.push_back(allowed);
        else if (launcher != nullptr && launcher->in_containers())  // it has none but those named
            for (const Device& device : found_->visible)
                all.push_back(std::to_string(device.index));
        return {all};
    }
    std::vector<std::string> names;
    for (const auto& one : groups_of_devices(allowed, *found_, 1)) names.push_back(one.front());
    if (names.empty() && options_.fill_devices)
        throw IoError(
            "`replicas: fill` needs to know the devices of this machine: nvidia-smi finds none, "
            "and `gpus` lists none");
    if (names.empty()) return std::vector<std::vector<std::string>>(counts.size());
    if (groups.size() == 1) {
        auto result = groups_of_devices(allowed, *found_, each, topology_);
        const std::int64_t most =
            fills ? std::max<std::int64_t>(
                        options_.most_devices.value_or(static_cast<std::int64_t>(names.size())) /
                            each,
                        1)
                  : groups.front().count;
        result.resize(std::min(result.size(), static_cast<std::size_t>(most)));
        return result;
    }
    const std::int64_t wanted = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(names.size()) < wanted)
        throw IoError("the configuration takes " + std::to_string(wanted) +
                      " devices, and there are " + std::to_string(names.size()));
    return shares_of_devices(std::move(names), *found_, counts, topology_);
}

std::vector<PlacedServer> EngineEvaluator::servers_for(const Configuration& configuration) {
    const std::vector<ServerGroup> groups = composition_.groups(configuration);
    const bool by_flags = !composition_.engine_of(configuration).devices.empty();
    const auto shares = shares_for(groups, by_flags);
    std::vector<PlacedServer> result;
    const auto place = [&](std::string name, const ServerGroup& group) {
        result.push_back({.name = std::move(name),
                          .role = group.role,
                          .gpus = list_of_devices(shares[result.size()]),
                          .devices = group.devices});
    };
    if (groups.size() > 1)
        for (const ServerGroup& group : groups)
            for (std::int64_t i = 0; i < group.count; ++i)
                place(group.role + "-" + std::to_string(i), group);
    else
        for (std::size_t i = 0; i < shares.size(); ++i)
            place(i == 0 ? "" : "replica-" + std::to_string(i), groups.front());
    for (PlacedServer& server : result) {
        // Where flags do not decide it, the engine is to have all that the study knows of.
        if (!by_flags && groups.size() == 1) server.devices = options_.most_devices.value_or(0);
        if (result.size() > 1 || options_.several_at_once) server.cores = cores_for(server.gpus);
    }
    return result;
}

/// Empty: any. An engine that has the machine to itself may use all of it, and cores of another
/// machine are not ours.
std::vector<int> EngineEvaluator::cores_for(const std::string& gpus) const {
    if (!options_.deploy.cores.empty() ||
        (options_.deploy.launcher && !options_.deploy.launcher->on_this_machine()))
        return {};
    return cores_near(named_gpus(gpus).value_or(std::vector<std::string>{}), *found_, topology_,
                      options_.numa_nodes);
}

}  // namespace servetune
