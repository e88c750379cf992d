// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace servetune {

/// The whole of a file. Throws IoError.
std::string read_file(const std::filesystem::path& file);
/// Writes beside `file` and renames over it: a reader sees the old content or the new, never half. Throws IoError.
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace servetune
