// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/devices.hpp"
#include "servetune/detail/host/topology.hpp"

#include <string>
#include <string_view>

namespace servetune {

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
