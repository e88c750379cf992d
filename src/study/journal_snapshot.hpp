// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sqlite_connection.hpp"

#include <sys/types.h>

namespace servetune {

/// Calls `read` with a journal's file as it is at one moment. No lock is taken and nothing in its
/// folder changes, so neither may have to be writable; a process may write to the journal
/// meanwhile. `read` is called again where the file changed under it. Throws IoError.
void read_snapshot(const std::filesystem::path& file,
                   const std::function<void(SqliteConnection&)>& read);

/// Throws IoError where a journal's path leads to nothing or to something else than a regular file.
void check_journal_file(const std::filesystem::path& file);

/// Copies a journal (a study's folder, or a journal's file), as it is now, into one file of this
/// mode. A process may write to the journal meanwhile. What was at `to` is replaced once the copy
/// is whole and on the disk; until then, and if the process is killed, only a file beside it that
/// ends in `.part` is left. Throws IoError.
void copy_journal(const std::filesystem::path& from, const std::filesystem::path& to, mode_t mode);

}  // namespace servetune
