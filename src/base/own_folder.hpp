// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace servetune {

/// Where temporary files go: `$TMPDIR`, else /tmp. Throws IoError where that is no folder.
inline std::filesystem::path temporary_files() {
    std::error_code error;
    std::filesystem::path result = std::filesystem::temp_directory_path(error);
    if (!error) return result;
    const char* set = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing sets it
    throw IoError("a temporary file is needed, and " + std::string(set == nullptr ? "/tmp" : set) +
                  " is no folder; set TMPDIR to one that can be written");
}

/// A new folder, which goes again with all that is in it: all of it was made by whoever has the
/// folder.
class OwnFolder {
public:
    /// `beginning` followed by six letters. Throws IoError.
    explicit OwnFolder(const std::filesystem::path& beginning) {
        std::string pattern = beginning.string() + "XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr)
            throw IoError("cannot make the folder " + pattern + ": " +
                          std::generic_category().message(errno));
        folder_ = pattern;
    }
    ~OwnFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return folder_; }

private:
    std::filesystem::path folder_;
};

}  // namespace servetune
