// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"

#include <sys/utsname.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

namespace servetune {

/// What can change the speed of an engine and is no part of its configuration: name -> text.
/// Variables have their own names; the machine's facts are `driver`, `kernel`, `cpu governor`, `cpu
/// boost`, `cores`, `cpu limit` and `memory limit`. What cannot be read is absent.
using Environment = std::map<std::string, std::string>;

/// Whose environment is read.
struct EnvironmentOptions {
    bool of_machine = true;  ///< the facts of this machine count
    bool inherits = true;    ///< this program's own variables reach what is measured
    std::map<std::string, std::string>
        set{};  ///< variables that it is given, in place of this program's
    std::vector<std::string>
        prefixes{};        ///< of its engines' variables, beside those that matter to any engine
    std::string driver{};  ///< of its accelerators, as nvidia-smi tells; empty: not told
    std::filesystem::path root = "/";  ///< holds `proc` and `sys`; another one in tests
};

/// Reads files and variables and starts nothing: milliseconds. Nothing throws.
[[nodiscard]] Environment environment_now(const EnvironmentOptions& options);

/// Whether a variable can change the speed of an engine: by a table of beginnings, each with its
/// source, and by those of the engine. Never one that holds a secret.
[[nodiscard]] bool can_change_speed(std::string_view variable,
                                    const std::vector<std::string>& prefixes = {});

/// `driver: 550.54 -> 560.35`, `OMP_NUM_THREADS: not set -> 8`, by name. Empty: they are the same.
[[nodiscard]] std::vector<std::string> differences(const Environment& before,
                                                   const Environment& after);

/// The processor of this machine: `64 x AMD EPYC 7763 64-Core Processor`, with the number of cores
/// that are online. Where the kernel tells no model (some ARM): `8 x aarch64`.
inline std::string processor_text(const std::filesystem::path& proc = "/proc") {
    std::string model;
    std::ifstream lines(proc / "cpuinfo");
    for (std::string line; model.empty() && std::getline(lines, line);)
        if (const auto colon = line.find(':');
            colon != npos && trimmed(std::string_view(line).substr(0, colon)) == "model name")
            model = trimmed(std::string_view(line).substr(colon + 1));
    utsname system{};
    if (model.empty() && uname(&system) == 0) model = system.machine;
    return std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " x " + model;
}

}  // namespace servetune
