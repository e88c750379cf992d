// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

/// The program that `#!` of a script names, with what it is to run; empty: it is no script.
[[nodiscard]] std::filesystem::path interpreter_of(const std::filesystem::path& program);
/// Where the Python environment of a program keeps its packages, as far as these folders are there.
[[nodiscard]] std::vector<std::filesystem::path> package_folders(
    const std::filesystem::path& program);

/// The version of an engine that a command starts here, found without starting it: of the Python
/// package that is called like the program or module (`0.11.0`); of another program its size and
/// the time it was written. `path`: in place of $PATH, unless empty. Empty: it is not here, or
/// nothing tells.
[[nodiscard]] std::string installed_version(const std::vector<std::string>& launch,
                                            const std::string& path = "");

}  // namespace servetune
