// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// An accelerator of this machine.
struct Device {
    int index = 0;       ///< nvidia-smi's: in the order of the PCI bus
    std::string uuid{};  ///< GPU-...
    std::string name{};  ///< NVIDIA H100 80GB HBM3
    std::uint64_t memory_bytes = 0;
    std::string driver{};  ///< version of the driver; empty: not told
};

/// What nvidia-smi finds.
struct FoundDevices {
    std::vector<Device> all{};  ///< of the machine
    /// those of them that CUDA_VISIBLE_DEVICES of this process names, in its order; without it: all
    std::vector<Device> visible{};
    /// why none was found though nvidia-smi is there; empty: it is not there, or all is well
    std::string trouble{};

    /// `8 x NVIDIA H100 80GB HBM3, 80 GiB each`, `1 x A + 2 x B`; of those that are visible. Empty
    /// where none is.
    [[nodiscard]] std::string text() const;
};

/// Asks nvidia-smi, a file or a name in PATH, within that time. Nothing that it does throws.
[[nodiscard]] FoundDevices find_devices(
    const std::string& nvidia_smi = "nvidia-smi",
    std::chrono::milliseconds within = std::chrono::seconds(10));

/// How the GPUs of a machine are joined, by nvidia-smi's numbers, as far as it tells.
struct DeviceTopology {
    std::map<std::pair<int, int>, int>
        nvlinks{};  ///< between two GPUs, the smaller number first; none: absent
    std::map<int, std::set<int>>
        numa_nodes{};  ///< of the memory and cores near a GPU; not told: absent

    [[nodiscard]] bool empty() const { return nvlinks.empty() && numa_nodes.empty(); }
    /// `NVLink joins 0,1,2,3; NUMA node 0: 0,1; NUMA node 1: 2,3`. Empty where nothing is told.
    [[nodiscard]] std::string text() const;
};

/// Reads what `nvidia-smi topo -m` prints: a row and a column for each GPU, columns of network
/// adapters between, then CPU and NUMA affinity. What is no such table tells nothing.
[[nodiscard]] DeviceTopology parse_topology(const std::string& text);
/// Asks nvidia-smi, a file or a name in PATH, within that time. Nothing that it does throws.
[[nodiscard]] DeviceTopology find_topology(
    const std::string& nvidia_smi = "nvidia-smi",
    std::chrono::milliseconds within = std::chrono::seconds(10));

/// The devices for engines that take `count` of them each: as many groups as there are; what is
/// left over is in none. They are those of `gpus` (a list as in CUDA_VISIBLE_DEVICES), else of this
/// process's own CUDA_VISIBLE_DEVICES, else those that were found. Empty where none of these says
/// which there are. Throws IoError where there are fewer than `count`. Of all ways to group them
/// the one counts in which 1. the most pairs within groups are joined by NVLink, 2. then by the
/// most links, 3. then the most pairs are of one NUMA node, 4. then devices that come first in the
/// list are together. The groups are in the same order, those with the best joined devices first,
/// and so are the devices of each as in the list. Where there are more than 16 devices, or nothing
/// is known of them, groups are neighbours in the list. O(2^n) of n devices.
[[nodiscard]] std::vector<std::vector<std::string>> groups_of_devices(
    const std::string& gpus, const FoundDevices& found, std::int64_t count,
    const DeviceTopology& topology = {});

/// The same for engines that take different numbers of them: the devices of each. Those that take
/// the most choose first, so that what is joined best stays together. Throws IoError as above.
[[nodiscard]] std::vector<std::vector<std::string>> shares_of_devices(
    std::vector<std::string> names, const FoundDevices& found,
    const std::vector<std::int64_t>& counts, const DeviceTopology& topology = {});

/// The cores of the NUMA nodes near all these devices (numbers or UUIDs), of those that this
/// process may use. Empty: any core, where that is not known of one of them, none of these cores
/// may be used, or they are all that may be.
///
/// Cores are the kernel's (`NODES/node0/cpulist`), not the table's: nvidia-smi prints six cores
/// where their numbers take turns between nodes (`0,2,4,6,8,10`), whatever their count.
[[nodiscard]] std::vector<int> cores_near(
    const std::vector<std::string>& devices, const FoundDevices& found,
    const DeviceTopology& topology,
    const std::filesystem::path& nodes = "/sys/devices/system/node");

/// The accelerators of a machine and how they are joined, as they were found: here, or when a
/// journal was written.
struct FoundMachine {
    FoundDevices devices{};
    DeviceTopology topology{};  ///< only asked for where there are several devices
};

/// Asks nvidia-smi: for the devices, and where there are several for their topology. Takes up to 20
/// s where the driver has to wake them. Nothing that it does throws.
[[nodiscard]] FoundMachine find_machine();

/// As journals keep it, and back. Throws ParseError for what is no such text.
[[nodiscard]] std::string json_of(const FoundMachine& machine);
[[nodiscard]] FoundMachine machine_from_json(std::string_view json);

}  // namespace servetune
