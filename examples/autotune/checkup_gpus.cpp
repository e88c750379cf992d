// SPDX-License-Identifier: Apache-2.0
#include "checkup.hpp"

#include "host/nvidia_smi.hpp"
#include "host/power_tool.hpp"
#include "host/process_table.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/detail/host/machine_watch.hpp"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace autotune {

using namespace servetune;
using State = Checkup::State;

namespace {

/// A GPU that the driver has to wake takes 1 to 3 s.
constexpr std::chrono::seconds smi_patience(10);

/// `GPU 0`, `GPUs 0, 1`.
std::string gpus_text(const std::vector<int>& gpus) {
    return fmt::format("GPU{} {}", gpus.size() == 1 ? "" : "s", fmt::join(gpus, ", "));
}

Checkup other_accelerators() {
    const MachineWatchOptions usual;
    auto tool = PowerTool::find({usual.amd_smi, usual.rocm_smi, usual.tegrastats});
    if (!tool)
        return {"GPUs", State::worth_knowing,
                "none found: no nvidia-smi, amd-smi, rocm-smi or tegrastats is on the PATH",
                "an engine can serve from the processor (`autotune init --gpus 0`) or on another "
                "machine (docs/guides/elsewhere.md)"};
    const auto told = tool->read(smi_patience);
    if (!told || told->empty())
        return {"GPUs", State::stops, tool->name() + " lists none: " + tool->trouble(),
                "mend the driver until it lists them"};
    return {"GPUs", State::fine, fmt::format("{} by {}", told->size(), tool->name())};
}

/// Which GPUs there are, and which of them engines see.
Checkup found_devices(const FoundDevices& found) {
    if (found.all.empty())
        return {"GPUs", State::stops, found.trouble,
                "mend the driver until nvidia-smi lists them; a reboot helps after an upgrade"};
    if (found.visible.size() == found.all.size()) return {"GPUs", State::fine, found.text()};
    return {"GPUs", State::worth_knowing,
            fmt::format("{} of {} are visible: CUDA_VISIBLE_DEVICES hides the others",
                        found.visible.size(), found.all.size()),
            "unset it, or name them in the study: `deploy: {gpus: ...}`"};
}

/// Memory that is taken before an engine starts: of each GPU by whom. The bounds are those by which
/// a measurement would be called disturbed.
std::vector<Checkup> others_on_gpus(NvidiaSmi& smi, const std::vector<GpuState>& states) {
    const MachineWatchOptions usual;
    std::map<std::string, std::pair<double, std::string>> others;
    for (const GpuProcess& process : smi.processes().rows) {
        auto& [mib, who] = others[process.uuid];
        mib += process.used_mib.value_or(0);
        const std::string command = command_of(process.id);
        who += fmt::format("{}{} ({})", who.empty() ? "" : ", ",
                           command.empty() ? "process" : command.substr(0, command.find(' ')),
                           process.id);
    }
    std::vector<Checkup> result;
    for (const GpuState& gpu : states) {
        const auto other = others.find(gpu.uuid);
        const double used = gpu.used_mib.value_or(0);
        const bool by_somebody =
            other != others.end() && other->second.first > usual.others_memory_mib;
        if (!by_somebody && used <= usual.before_memory_mib) continue;
        result.push_back({"GPU use", State::worth_knowing,
                          fmt::format("GPU {}: {} MiB in use by {}", gpu.index,
                                      fixed_text(by_somebody ? other->second.first : used, 0),
                                      by_somebody ? other->second.second
                                                  : "somebody whom nvidia-smi does not show here"),
                          "end it, or measure on other GPUs: `deploy: {gpus: ...}`; results beside "
                          "it are called disturbed"});
    }
    if (result.empty())
        result.push_back({"GPU use", State::fine, "no other process computes on them"});
    return result;
}

std::vector<Checkup> slowdowns(const std::vector<GpuState>& states) {
    std::vector<Checkup> result;
    for (const GpuState& gpu : states)
        if (const std::uint64_t held =
                gpu.reasons.value_or(0) & (sw_thermal | hw_thermal | hw_power_brake);
            held != 0)
            result.push_back(
                {"clocks", State::worth_knowing,
                 fmt::format(
                     "GPU {} is held down now by {}{}", gpu.index, text_of_reasons(held),
                     gpu.celsius ? ", at " + fixed_text(*gpu.celsius, 0) + " C" : std::string()),
                 "see to its cooling and its supply of power"});
    return result;
}

std::vector<Checkup> gpu_settings(NvidiaSmi& smi, const std::vector<GpuState>& states) {
    std::vector<int> not_persistent, shut, exclusive;
    std::vector<Checkup> result = slowdowns(states);
    for (const GpuSettings& gpu : smi.settings().rows) {
        if (gpu.persistence == std::optional(false)) not_persistent.push_back(gpu.index);
        if (gpu.compute_mode == "Prohibited") shut.push_back(gpu.index);
        if (gpu.compute_mode == "Exclusive_Process") exclusive.push_back(gpu.index);
        if (gpu.watts_at_most && gpu.usual_watts_at_most &&
            *gpu.watts_at_most < *gpu.usual_watts_at_most)
            result.push_back({"power limit", State::worth_knowing,
                              fmt::format("GPU {}: {} W, {} W as delivered", gpu.index,
                                          fixed_text(*gpu.watts_at_most, 0),
                                          fixed_text(*gpu.usual_watts_at_most, 0)),
                              fmt::format("unless that is meant: sudo nvidia-smi -i {} -pl {}",
                                          gpu.index, fixed_text(*gpu.usual_watts_at_most, 0))});
    }
    if (!not_persistent.empty())
        result.push_back({"persistence", State::worth_knowing,
                          "off on " + gpus_text(not_persistent) +
                              ": the driver unloads between trials, and each start waits for it",
                          "sudo nvidia-smi -pm 1"});
    if (!shut.empty())
        result.push_back({"compute mode", State::stops,
                          "Prohibited on " + gpus_text(shut) + ": nothing can compute there",
                          "sudo nvidia-smi -c 0"});
    if (!exclusive.empty())
        result.push_back({"compute mode", State::worth_knowing,
                          "Exclusive_Process on " + gpus_text(exclusive) +
                              ": two processes cannot share a GPU, `weight_cache` needs that",
                          "sudo nvidia-smi -c 0"});
    if (result.empty())
        result.push_back(
            {"GPU settings", State::fine, "power limits as delivered, no clock held down"});
    return result;
}

}  // namespace

std::vector<Checkup> checkups_of_gpus() {
    NvidiaSmi smi("nvidia-smi", smi_patience);
    if (!smi.present()) return {other_accelerators()};
    const FoundDevices found = find_devices("nvidia-smi", smi_patience);
    std::vector<Checkup> result{found_devices(found)};
    if (found.all.empty()) return result;
    if (const std::string& driver = found.all.front().driver; !driver.empty()) {
        const std::string cuda = smi.cuda_version();
        result.push_back(
            {"driver", State::fine, driver + (cuda.empty() ? "" : ", CUDA up to " + cuda)});
    }
    const auto states = smi.gpus();
    if (states.trouble.kind != SmiTrouble::Kind::none)
        result.push_back({"GPU state", State::stops, "nvidia-smi: " + states.trouble.words,
                          "the kernel's log says why (dmesg, NVRM Xid); often a reboot is needed"});
    for (auto&& part : {others_on_gpus(smi, states.rows), gpu_settings(smi, states.rows)})
        result.insert(result.end(), part.begin(), part.end());
    return result;
}

}  // namespace autotune
