// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
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
    std::vector<Device>
        visible{};  ///< those of them that CUDA_VISIBLE_DEVICES of this process names, in its order; without it: all
    std::string
        trouble{};  ///< why none was found though nvidia-smi is there; empty: it is not there, or all is well

    /// `8 x NVIDIA H100 80GB HBM3, 80 GiB each`, `1 x A + 2 x B`; of those that are visible. Empty
    /// where none is.
    [[nodiscard]] std::string text() const;
};

/// Asks nvidia-smi, a file or a name in PATH, within that time. Nothing that it does throws.
[[nodiscard]] FoundDevices find_devices(
    const std::string& nvidia_smi = "nvidia-smi",
    std::chrono::milliseconds within = std::chrono::seconds(10));

}  // namespace servetune
