// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"

#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace servetune::test {

/// The lines of a file, none where there is no file.
inline std::vector<std::string> lines_in(const std::filesystem::path& file) {
    std::error_code error;
    std::istringstream stream(std::filesystem::exists(file, error) ? read_file(file) : "");
    std::vector<std::string> result;
    for (std::string line; std::getline(stream, line);) result.push_back(line);
    return result;
}

}  // namespace servetune::test
