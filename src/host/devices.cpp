// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/devices.hpp"

#include "base/text.hpp"
#include "kept_output.hpp"
#include "nvidia_smi.hpp"
#include "run_command.hpp"
#include "servetune/error.hpp"
#include "start_program.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

/// `0, GPU-6d2a..., NVIDIA H100 80GB HBM3, 81559, 570.86`; a name has no comma. Memory that it does
/// not tell ([N/A]) is 0.
std::optional<Device> device_of(std::string_view line) {
    std::vector<std::string_view> fields;
    for (std::size_t end = 0; end != std::string_view::npos;
         line.remove_prefix(std::min(line.size(), end + 1))) {
        end = line.find(',');
        fields.push_back(trimmed(line.substr(0, end)));
    }
    Device device;
    if (fields.size() < 4 || fields.size() > 5 || fields[1].empty() || fields[2].empty())
        return std::nullopt;
    const std::string_view index = fields[0];
    const auto [end, error] =
        std::from_chars(index.data(), index.data() + index.size(), device.index);
    if (error != std::errc() || end != index.data() + index.size()) return std::nullopt;
    device.uuid = fields[1];
    device.name = fields[2];
    std::uint64_t mib = 0;
    (void)std::from_chars(fields[3].data(), fields[3].data() + fields[3].size(), mib);
    device.memory_bytes = mib << 20U;
    if (fields.size() == 5 && !fields[4].starts_with('[')) device.driver = fields[4];
    return device;
}

std::vector<Device> visible_of(const std::vector<Device>& all) {
    std::vector<GpuState> states;
    for (const Device& device : all) states.push_back({.index = device.index, .uuid = device.uuid});
    std::vector<Device> result;
    for (const GpuState& state : only_named(named_gpus(""), std::move(states)))
        result.push_back(*std::find_if(all.begin(), all.end(), [&](const Device& device) {
            return device.uuid == state.uuid;
        }));
    return result;
}

}  // namespace

std::string FoundDevices::text() const {
    std::vector<std::pair<std::string, int>> kinds;
    for (const Device& device : visible) {
        constexpr double gib = 1UL << 30UL;
        const auto memory = std::llround(static_cast<double>(device.memory_bytes) / gib);
        const std::string kind =
            device.name + (memory > 0 ? ", " + std::to_string(memory) + " GiB each" : "");
        const auto known = std::find_if(kinds.begin(), kinds.end(),
                                        [&](const auto& one) { return one.first == kind; });
        if (known == kinds.end()) kinds.emplace_back(kind, 1);
        else ++known->second;
    }
    std::string result;
    for (const auto& [kind, count] : kinds)
        result += (result.empty() ? "" : " + ") + std::to_string(count) + " x " + kind;
    return result;
}

FoundDevices find_devices(const std::string& nvidia_smi, std::chrono::milliseconds within) {
    const auto file = find_program(nvidia_smi);
    if (file.empty()) return {};
    FoundDevices result;
    try {
        constexpr std::size_t output_bytes = 1UL << 20UL;
        const RanCommand command =
            run_command({file.string(), "--query-gpu=index,uuid,name,memory.total,driver_version",
                         "--format=csv,noheader,nounits"},
                        within, output_bytes);
        std::string other;
        for (const std::string& line : lines_of(command.output)) {
            if (const auto device = device_of(line)) result.all.push_back(*device);
            else if (other.empty()) other = line.substr(0, 200);
        }
        if (result.all.empty())
            result.trouble =
                command.end != RanCommand::End::exited ? "nvidia-smi did not answer in time"
                : other.empty()
                    ? "nvidia-smi ended with exit code " + std::to_string(command.exit_code)
                    : "nvidia-smi said '" + other + "'";
    } catch (const IoError& error) {
        result.trouble = error.what();
    }
    result.visible = visible_of(result.all);
    return result;
}

}  // namespace servetune
