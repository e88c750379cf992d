// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/devices.hpp"

#include "base/nesting.hpp"
#include "base/text.hpp"
#include "nvidia_smi.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

std::vector<Device> visible_of(const std::vector<Device>& all) {
    std::vector<GpuState> states;
    for (const Device& device : all) states.push_back({.index = device.index, .uuid = device.uuid});
    std::vector<Device> result;
    for (const GpuState& state : only_named(named_gpus(""), std::move(states)))
        result.push_back(
            *find_if(all, [&](const Device& device) { return device.uuid == state.uuid; }));
    return result;
}

}  // namespace

std::string FoundDevices::text() const {
    std::vector<std::pair<std::string, int>> kinds;
    for (const Device& device : visible) {
        constexpr double gib = 1UL << 30UL;
        const auto memory = std::llround(double(device.memory_bytes) / gib);
        const std::string kind =
            device.name + (memory > 0 ? ", " + std::to_string(memory) + " GiB each" : "");
        const auto known = find_if(kinds, [&](const auto& one) { return one.first == kind; });
        if (known == kinds.end()) kinds.emplace_back(kind, 1);
        else ++known->second;
    }
    std::string result;
    for (const auto& [kind, count] : kinds)
        result += (result.empty() ? "" : " + ") + std::to_string(count) + " x " + kind;
    return result;
}

FoundDevices find_devices(const std::string& nvidia_smi, std::chrono::milliseconds within) {
    NvidiaSmi smi(nvidia_smi, within);
    if (!smi.present()) return {};
    SmiAnswer<Device> answer = smi.devices();
    FoundDevices result;
    result.all = std::move(answer.rows);
    if (result.all.empty()) result.trouble = "nvidia-smi: " + answer.trouble.words;
    result.visible = visible_of(result.all);
    return result;
}

std::vector<std::vector<std::string>> groups_of_devices(const std::string& gpus,
                                                        const FoundDevices& found,
                                                        std::int64_t count) {
    std::vector<std::string> known;
    if (const auto named = named_gpus(gpus)) known = *named;
    else
        for (const Device& device : found.visible) known.push_back(std::to_string(device.index));
    if (known.empty()) return {};
    const auto wanted = std::size_t(std::max<std::int64_t>(count, 1));
    if (known.size() < wanted)
        throw IoError("the configuration takes " + std::to_string(wanted) +
                      " devices, and there are " + std::to_string(known.size()));
    std::vector<std::vector<std::string>> result(known.size() / wanted);
    for (std::size_t i = 0; i < result.size() * wanted; ++i) result[i / wanted].push_back(known[i]);
    return result;
}

std::vector<std::vector<std::string>> shares_of_devices(const std::vector<std::string>& names,
                                                        const std::vector<std::int64_t>& counts) {
    std::vector<std::vector<std::string>> result(counts.size());
    auto next = names.begin();
    for (std::size_t i = 0; i < counts.size(); ++i)
        for (std::int64_t taken = 0; taken < counts[i]; ++taken) {
            if (next == names.end()) throw IoError("the engines take more devices than there are");
            result[i].push_back(*next++);
        }
    return result;
}

namespace {

using DevicesJson = nlohmann::ordered_json;

DevicesJson json_of_devices(const std::vector<Device>& devices) {
    DevicesJson result = DevicesJson::array();
    for (const Device& device : devices)
        result.push_back({{"index", device.index},
                          {"uuid", device.uuid},
                          {"name", device.name},
                          {"memory_bytes", device.memory_bytes},
                          {"driver", device.driver}});
    return result;
}

std::vector<Device> devices_from(const DevicesJson& list) {
    std::vector<Device> result;
    for (const DevicesJson& one : list)
        result.push_back({one.at("index").get<int>(), one.at("uuid").get<std::string>(),
                          one.at("name").get<std::string>(),
                          one.at("memory_bytes").get<std::uint64_t>(),
                          one.at("driver").get<std::string>()});
    return result;
}

}  // namespace

std::string json_of(const FoundDevices& found) {
    const DevicesJson object{{"all", json_of_devices(found.all)},
                             {"visible", json_of_devices(found.visible)}};
    return object.dump(-1, ' ', false, DevicesJson::error_handler_t::replace);
}

FoundDevices found_devices_from_json(std::string_view json) {
    try {
        const auto object = DevicesJson::parse(json, RefuseDeep());
        return {devices_from(object.at("all")), devices_from(object.at("visible")), {}};
    } catch (const nlohmann::json::exception& error) {
        throw ParseError(std::string("not a machine as a journal keeps it: ") + error.what());
    }
}

}  // namespace servetune
