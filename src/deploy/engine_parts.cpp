// SPDX-License-Identifier: Apache-2.0
// The engines that a configuration starts, and the devices and cores of each.
#include "host/nvidia_smi.hpp"
#include "replicas.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/engine_evaluator.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <numeric>

namespace servetune {

/// Looks once what there is. The devices that the study names, as in CUDA_VISIBLE_DEVICES; empty:
/// none are named.
std::string EngineEvaluator::devices_allowed() {
    if (options_.deploy.launcher && !options_.deploy.launcher->on_this_machine())
        found_ =
            FoundDevices{};  // what is found here is not there, and neither is what this process may see
    if (!found_) {
        found_ = find_devices(options_.deploy.nvidia_smi);
        if (found_->all.size() > 1) topology_ = find_topology(options_.deploy.nvidia_smi);
    }
    const auto named = options_.deploy.environment.find("CUDA_VISIBLE_DEVICES");
    return options_.deploy.gpus.empty() && named != options_.deploy.environment.end()
               ? named->second
               : options_.deploy.gpus;
}

/// Of each copy of the engine exactly as many devices as the layout takes, so that it never touches
/// one that it was not given. All of `gpus`, once, where flags do not decide how many (llama.cpp).
std::vector<std::string> EngineEvaluator::gpus_for(const Configuration& configuration) {
    const Launcher* launcher = options_.deploy.launcher.get();
    if (launcher != nullptr && launcher->gives_out_devices()) {
        const std::int64_t each = std::max<std::int64_t>(composition_.devices_of(configuration), 1);
        const bool fills =
            options_.fill_devices && !composition_.engine_of(configuration).devices.empty();
        const std::int64_t copies = fills ? options_.most_devices.value_or(each) / each : 1;
        return std::vector<std::string>(
            static_cast<std::size_t>(std::max<std::int64_t>(copies, 1)));
    }
    const std::string allowed = devices_allowed();
    if (launcher != nullptr && !launcher->on_this_machine() && allowed.empty()) {
        if (options_.fill_devices)
            throw UsageError(
                "`replicas: fill` needs to know the devices of the other machine: list them under "
                "`gpus`");
        return {""};
    }
    if (composition_.engine_of(configuration).devices.empty()) {
        const bool needs_names = allowed.empty() && options_.deploy.launcher &&
                                 options_.deploy.launcher->in_containers();
        std::string all = allowed;  // a container has none unless they are named
        if (needs_names)
            for (const Device& device : found_->visible)
                all += (all.empty() ? "" : ",") + std::to_string(device.index);
        return {all};
    }
    std::vector<std::string> result;
    for (const auto& group :
         groups_of_devices(allowed, *found_, composition_.devices_of(configuration), topology_)) {
        result.emplace_back();
        for (const std::string& device : group)
            result.back() += (result.back().empty() ? "" : ",") + device;
        const auto given = static_cast<std::int64_t>(result.size() * group.size());
        if (!options_.fill_devices ||
            (options_.most_devices &&
             given + static_cast<std::int64_t>(group.size()) > *options_.most_devices))
            break;
    }
    if (result.empty() && options_.fill_devices)
        throw IoError(
            "`replicas: fill` needs to know the devices of this machine: nvidia-smi finds none, "
            "and `gpus` lists none");
    if (result.empty()) result.emplace_back();
    return result;
}

/// The engines of a configuration: copies of one, or those of its roles, each on its devices.
std::vector<ServerPart> EngineEvaluator::parts_for(const Configuration& configuration) {
    const std::vector<RoleOf> roles = composition_.roles_of(configuration);
    std::vector<ServerPart> parts;
    std::vector<std::string> gpus;
    if (roles.empty()) {
        gpus = gpus_for(configuration);
        for (std::size_t i = 0; i < gpus.size(); ++i)
            parts.push_back({.name = i == 0 ? "" : "replica-" + std::to_string(i),
                             .devices = devices_to_ask_for(configuration)});
    } else {
        for (const RoleOf& role : roles)
            for (std::int64_t i = 0; i < role.count; ++i)
                parts.push_back({.name = role.name + "-" + std::to_string(i),
                                 .role = role.name,
                                 .devices = role.devices});
        gpus = gpus_of_roles(parts);
    }
    const std::vector<std::vector<int>> cores = cores_for(gpus);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].gpus = gpus[i];
        if (i < cores.size()) parts[i].cores = cores[i];
    }
    return parts;
}

/// Of each engine devices of its own.
std::vector<std::string> EngineEvaluator::gpus_of_roles(const std::vector<ServerPart>& parts) {
    if (options_.fill_devices)
        throw UsageError(
            "fill_devices: roles say how many engines there are, so copies cannot fill the "
            "machine");
    std::vector<std::string> result(parts.size());
    const Launcher* launcher = options_.deploy.launcher.get();
    if (launcher != nullptr && launcher->gives_out_devices()) return result;
    const std::string allowed = devices_allowed();
    if (launcher != nullptr && !launcher->on_this_machine() && allowed.empty())
        throw UsageError(
            "roles need to know the devices of the other machine, for each engine gets its own: "
            "list them under `gpus`");
    std::vector<std::string> left;
    for (const auto& one : groups_of_devices(allowed, present(found_), 1))
        left.push_back(one.front());
    if (left.empty()) return result;  // nobody knows of any
    const std::string there =
        (allowed.empty() ? "this machine has " : "the study names ") + std::to_string(left.size());
    std::vector<std::int64_t> counts;
    for (const ServerPart& part : parts) counts.push_back(part.devices);
    const std::int64_t wanted = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(left.size()) < wanted)
        throw IoError("the roles of the configuration take " + std::to_string(wanted) +
                      " devices together, and " + there);
    const auto shares = shares_of_devices(std::move(left), present(found_), counts, topology_);
    for (std::size_t i = 0; i < parts.size(); ++i)
        for (const std::string& device : shares[i])
            result[i] += (result[i].empty() ? "" : ",") + device;
    return result;
}

/// Where flags do not decide how many devices the engine takes, it is to have all that the study
/// knows of.
std::int64_t EngineEvaluator::devices_to_ask_for(const Configuration& configuration) const {
    const bool by_flags = !composition_.engine_of(configuration).devices.empty();
    return by_flags ? composition_.devices_of(configuration) : options_.most_devices.value_or(0);
}

/// Of each copy; empty: any. An engine that has the machine to itself may use all of it.
std::vector<std::vector<int>> EngineEvaluator::cores_for(
    const std::vector<std::string>& gpus) const {
    std::vector<std::vector<int>> result;
    if (!options_.deploy.cores.empty() || (gpus.size() < 2 && !options_.several_at_once))
        return result;
    if (options_.deploy.launcher && !options_.deploy.launcher->on_this_machine())
        return result;  // its cores are not ours
    for (const std::string& devices : gpus)
        result.push_back(cores_near(named_gpus(devices).value_or(std::vector<std::string>{}),
                                    *found_, topology_, options_.numa_nodes));
    return result;
}

}  // namespace servetune
