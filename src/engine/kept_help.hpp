// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A folder with the help texts of installed engines: a real engine takes 8 to 60 s to print its
/// help, because it imports PyTorch first. Whatever goes wrong with the folder, there is nothing
/// kept.
class KeptHelp {
public:
    /// Empty: nothing is kept.
    explicit KeptHelp(std::filesystem::path folder) : folder_(std::move(folder)) {}
    /// `help` in the user's cache (base/cache_folder.hpp); empty where there is none.
    static std::filesystem::path users();

    /// What `argv` (its first word the program's file) once printed. Nothing where the program, its
    /// interpreter or the packages beside it have changed since, by size and modification time.
    [[nodiscard]] std::optional<std::string> find(const std::vector<std::string>& argv) const;
    void keep(const std::vector<std::string>& argv, const std::string& text) const;

private:
    [[nodiscard]] std::filesystem::path file_of(const std::vector<std::string>& argv) const;

    std::filesystem::path folder_;
};

}  // namespace servetune
