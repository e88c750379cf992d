// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace servetune {

/// The kind of network or cluster filesystem, such as "NFS", that a folder is on; empty: it belongs
/// to this machine alone, or nobody knows. SQLite's write-ahead log needs memory that all processes
/// share, which two machines do not (https://www.sqlite.org/wal.html).
std::string network_filesystem_of(const std::filesystem::path& folder);

/// The same of `f_type` of statfs(2), and of the type in mountinfo, which tells apart what FUSE
/// serves (`fuse.sshfs`).
std::string network_filesystem_named(std::uint64_t f_type, const std::string& mounted_as);

/// The type of the mount of a device in the text of /proc/self/mountinfo; empty: there is none.
std::string mounted_as_in(const std::string& mountinfo, unsigned major, unsigned minor);

}  // namespace servetune
