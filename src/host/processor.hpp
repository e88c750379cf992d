// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace servetune {

/// The processor of this machine: `64 x AMD EPYC 7763 64-Core Processor`, with the number of cores
/// that are online. Where the kernel tells no model (some ARM): `8 x aarch64`.
inline std::string processor_text(const std::filesystem::path& proc = "/proc") {
    std::string model;
    std::ifstream lines(proc / "cpuinfo");
    for (std::string line; model.empty() && std::getline(lines, line);)
        if (const auto colon = line.find(':');
            colon != std::string::npos &&
            trimmed(std::string_view(line).substr(0, colon)) == "model name")
            model = trimmed(std::string_view(line).substr(colon + 1));
    utsname system{};
    if (model.empty() && uname(&system) == 0) model = system.machine;
    return std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " x " + model;
}

}  // namespace servetune
