// SPDX-License-Identifier: Apache-2.0
#include "found_hardware.hpp"

#include "base/lower_case.hpp"
#include "servetune/detail/base/nearest.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

std::string in_gib(double bytes) {
    return std::to_string(std::llround(bytes / (1UL << 30U))) + " GiB";
}

std::string none_of(const std::string& name, const std::vector<HardwareSpec>& known) {
    std::vector<std::string> names;
    for (const HardwareSpec& spec : known) names.push_back(spec.name);
    return "none of the chips known here; nearest: " + listed(nearest_first(name, names), 3);
}

}  // namespace

std::string why_unknown(const std::string& name, const std::vector<HardwareSpec>& known) {
    const auto is_called = [&](const HardwareSpec& spec) {
        return spec.name == name ||
               std::any_of(spec.also.begin(), spec.also.end(), [&](const std::string& also) {
                   return lower_case(also) == lower_case(name);
               });
    };
    return std::any_of(known.begin(), known.end(), is_called)
               ? ""
               : "'hardware': '" + name + "' is " + none_of(name, known);
}

FoundHardware hardware_of(const FoundDevices& found, const std::vector<HardwareSpec>& known) {
    FoundHardware result;
    for (const Device& device : found.visible) {
        const auto spec = hardware_in(device.name, known);
        if (!spec)
            return {"", "nvidia-smi finds '" + device.name + "', which is " +
                            none_of(device.name, known)};
        const auto memory = static_cast<double>(device.memory_bytes);
        constexpr double tolerance = 0.15;  // drivers keep up to 7 % for themselves (a10, l4)
        if (memory > 0 && std::abs(memory / spec->memory_bytes - 1) > tolerance)
            return {"", "nvidia-smi finds '" + device.name + "' with " + in_gib(memory) + ", and " +
                            spec->name + " has " + in_gib(spec->memory_bytes)};
        if (!result.name.empty() && result.name != spec->name)
            return {"", "nvidia-smi finds different chips: " + result.name + " and " + spec->name};
        result.name = spec->name;
    }
    return result;
}

std::string why_other_chip(const StudyFile& study) {
    const StudyMachine& machine = study.machine;
    if (machine.hardware.empty() || !machine.hardware_file.empty() || !machine.found ||
        machine.found->devices.visible.empty())
        return "";
    const std::vector<HardwareSpec> known = study.catalogue().all_hardware();
    const auto named = hardware_in(machine.hardware, known);
    const std::string found = hardware_of(machine.found->devices, known).name;
    if (!named || found.empty() || named->name == found) return "";
    return "the study is for " + named->name + ", and nvidia-smi finds " + found +
           " here: what is predicted, which flags are ruled " +
           "out by the chip, and what physics allows are those of " + named->name +
           "; write `hardware: " + found + "`";
}

}  // namespace servetune
