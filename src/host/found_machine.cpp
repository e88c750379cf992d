// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/found_machine.hpp"

#include "base/nesting.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace servetune {
namespace {

using MachineJson = nlohmann::ordered_json;

MachineJson json_of_devices(const std::vector<Device>& devices) {
    MachineJson result = MachineJson::array();
    for (const Device& device : devices)
        result.push_back({{"index", device.index},
                          {"uuid", device.uuid},
                          {"name", device.name},
                          {"memory_bytes", device.memory_bytes},
                          {"driver", device.driver}});
    return result;
}

std::vector<Device> devices_from(const MachineJson& list) {
    std::vector<Device> result;
    for (const MachineJson& one : list)
        result.push_back({one.at("index").get<int>(), one.at("uuid").get<std::string>(),
                          one.at("name").get<std::string>(),
                          one.at("memory_bytes").get<std::uint64_t>(),
                          one.at("driver").get<std::string>()});
    return result;
}

}  // namespace

FoundMachine find_machine() {
    FoundMachine machine{find_devices()};
    if (machine.devices.all.size() > 1) machine.topology = find_topology();
    return machine;
}

std::string json_of(const FoundMachine& machine) {
    MachineJson links = MachineJson::array();
    for (const auto& [pair, count] : machine.topology.nvlinks)
        links.push_back({pair.first, pair.second, count});
    MachineJson nodes = MachineJson::array();
    for (const auto& [device, near] : machine.topology.numa_nodes) nodes.push_back({device, near});
    const MachineJson object{{"all", json_of_devices(machine.devices.all)},
                             {"visible", json_of_devices(machine.devices.visible)},
                             {"nvlinks", links},
                             {"numa_nodes", nodes}};
    return object.dump(-1, ' ', false, MachineJson::error_handler_t::replace);
}

FoundMachine machine_from_json(std::string_view json) {
    try {
        const auto object = MachineJson::parse(json, RefuseDeep());
        FoundMachine machine;
        machine.devices.all = devices_from(object.at("all"));
        machine.devices.visible = devices_from(object.at("visible"));
        for (const MachineJson& link : object.at("nvlinks"))
            machine.topology.nvlinks[{link.at(0).get<int>(), link.at(1).get<int>()}] =
                link.at(2).get<int>();
        for (const MachineJson& node : object.at("numa_nodes"))
            node.at(1).get_to(machine.topology.numa_nodes[node.at(0).get<int>()]);
        return machine;
    } catch (const nlohmann::json::exception& error) {
        throw ParseError(std::string("not a machine as a journal keeps it: ") + error.what());
    }
}

}  // namespace servetune
