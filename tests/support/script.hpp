// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/temporary_folder.hpp"

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace servetune::test {

/// A script as a program of its own, run by sh.
inline std::filesystem::path script(const TemporaryFolder& folder, const std::string& lines,
                                    const std::string& name = "program") {
    const std::filesystem::path file = folder.write(name, "#!/bin/sh\n" + lines);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
}

/// How many files and folders it has, descriptors of `/proc/self/fd` for instance.
inline std::size_t entries(const std::filesystem::path& folder) {
    return std::size_t(std::distance(std::filesystem::directory_iterator(folder),
                                     std::filesystem::directory_iterator()));
}

}  // namespace servetune::test
