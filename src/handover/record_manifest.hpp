// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace servetune {

/// The list of a record's files with their hashes: `manifest.json` in its folder.
struct RecordManifest {
    struct File {
        std::string path;  ///< within the folder, with `/`
        std::uintmax_t bytes = 0;
        std::string sha256;
    };
    std::string kind;  ///< `study`, or `result` of one measurement
    std::string name;
    std::map<std::string, std::string>
        versions{};  ///< of engine, driver, GPU, kernel and autotune, as far as they are known
    std::string repeat{};       ///< the command that measures again
    std::vector<File> files{};  ///< by path; all but the manifest itself
};

inline constexpr const char* manifest_name = "manifest.json";

/// Whether a folder says that it is a record.
[[nodiscard]] bool is_record(const std::filesystem::path& folder);

/// Hashes every file of the folder and writes the manifest. Throws IoError.
void write_manifest(const std::filesystem::path& folder, RecordManifest manifest);

/// Reads the manifest of a folder that a stranger may have made. Throws ParseError for one that is
/// none, names a file twice, or names what is not in the folder: an absolute path, `..`, characters
/// other than letters, digits and `. _ - + /`.
RecordManifest read_manifest(const std::filesystem::path& folder);

/// What in the folder is not as the manifest says, a line each: a file changed, added or removed, a
/// symbolic link, what is neither file nor folder, files that are larger than a record's (1 GiB, 4
/// GiB together). Nothing is opened before all names and sizes are right.
[[nodiscard]] std::vector<std::string> tampered_files(const std::filesystem::path& folder,
                                                      const RecordManifest& manifest);

}  // namespace servetune
