// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace simengine {

/// The devices of an engine that pretends to have some: in a folder that stands for the machine, a
/// locked file for each device that is taken, and a line in `claims` for each engine that took its
/// own. They are held until the process ends.
class ClaimedDevices {
public:
    /// What a process needs of a device: that of an engine, the memory of a daemon that keeps
    /// weights there, or both.
    enum Part : unsigned { engine = 1, weights = 2, all = 3 };

    /// Takes parts of the first `count` of the devices that CUDA_VISIBLE_DEVICES names, else of 0,
    /// 1, ... Why it cannot, as an engine says it: fewer are visible than it needs, or another
    /// process has one.
    static std::string take(const std::filesystem::path& folder, std::size_t count, Part part);
};

}  // namespace simengine
