// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace servetune {

/// Copies a journal (a study's folder, or a journal's file), as it is now, into one file of this
/// mode. A process may write to the journal meanwhile. What was at `to` is replaced once the copy
/// is whole and on the disk; until then, and if the process is killed, only a file beside it that
/// ends in `.part` is left. Throws IoError.
void copy_journal(const std::filesystem::path& from, const std::filesystem::path& to, mode_t mode);

}  // namespace servetune
