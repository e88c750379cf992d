// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
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

}  // namespace servetune
