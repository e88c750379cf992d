// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
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

/// The devices for engines that take `count` of them each: as many groups of neighbours as there
/// are; what is left over is in none. They are those of `gpus` (a list as in CUDA_VISIBLE_DEVICES),
/// else of this process's own CUDA_VISIBLE_DEVICES, else those that were found. Empty where none of
/// these says which there are. Throws IoError where there are fewer than `count`.
[[nodiscard]] std::vector<std::vector<std::string>> groups_of_devices(const std::string& gpus,
                                                                      const FoundDevices& found,
                                                                      std::int64_t count);

/// The devices of engines that take different numbers of them, in their order. Throws IoError where
/// there are too few.
[[nodiscard]] std::vector<std::vector<std::string>> shares_of_devices(
    const std::vector<std::string>& names, const std::vector<std::int64_t>& counts);

/// As journals keep what was found, and back. Throws ParseError for what is no such text.
[[nodiscard]] std::string json_of(const FoundDevices& found);
[[nodiscard]] FoundDevices found_devices_from_json(std::string_view json);

}  // namespace servetune
