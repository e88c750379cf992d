// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace servetune {

/// The kind of network or cluster filesystem, such as "NFS", that a folder is on; empty: it belongs
/// to this machine alone, or nobody knows. SQLite's write-ahead log needs memory that all processes
/// share, which two machines do not (https://www.sqlite.org/wal.html).
std::string network_filesystem_of(const std::filesystem::path& folder);
/// The same of `f_type` of statfs(2).
std::string network_filesystem_named(std::uint32_t f_type);

/// The right to write a study, for one process at a time. The kernel releases it when the process
/// ends, however it ends.
///
/// Two locks (flock): `study.lock`, and the folder itself. The file can be removed while it is
/// locked and then protects nothing; the folder cannot. Filesystems that lock no folders have the
/// file only.
class StudyLock {
public:
    /// Throws IoError: another process has it, or the filesystem has no locks.
    explicit StudyLock(std::filesystem::path folder);
    ~StudyLock();
    StudyLock(const StudyLock&) = delete;
    StudyLock& operator=(const StudyLock&) = delete;

    /// Locks `study.lock` again where somebody has removed or replaced it. Throws IoError when
    /// another process was faster: nothing may be written then.
    void keep();

private:
    void take_file();
    [[nodiscard]] bool holds_file() const;

    std::filesystem::path folder_;
    std::filesystem::path file_;
    int folder_lock_ = -1;
    int file_lock_ = -1;
};

}  // namespace servetune
