// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/topology.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/study_file.hpp"

#include <string>
#include <vector>

namespace servetune {

/// Which of the known chips the devices of a machine are.
struct FoundHardware {
    std::string name{};  ///< HardwareSpec::name; empty: none of them, or no device was found
    std::string
        why_not{};  ///< for a person, with the nearest names; empty: recognised, or no device was found
};

/// The chip that all visible devices are, by the names of search_spaces/hardware (what nvidia-smi
/// and rocm-smi print is among them). A device with another amount of memory (more than 15 % apart)
/// is another chip: a part of one, or a card that its name does not tell apart.
[[nodiscard]] FoundHardware hardware_of(const FoundDevices& found,
                                        const std::vector<HardwareSpec>& known);

/// Why a chip that a study names is not known, with the nearest names; empty: it is known.
[[nodiscard]] std::string why_unknown(const std::string& name,
                                      const std::vector<HardwareSpec>& known);

/// That a study names another chip than this machine has, and what follows; empty: it does not, or
/// one of both is not known, or its engines start elsewhere.
[[nodiscard]] std::string why_other_chip(const StudyFile& study);

}  // namespace servetune
