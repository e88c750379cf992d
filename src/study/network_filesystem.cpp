// SPDX-License-Identifier: Apache-2.0
#include "network_filesystem.hpp"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

/// From linux/magic.h; those that are not in the kernel from src/stat.c of GNU coreutils.
constexpr std::array<std::pair<std::uint64_t, std::string_view>, 16> network_kinds{
    {{0x6969, "NFS"},
     {0x517B, "SMB"},
     {0xFF534D42, "CIFS"},
     {0xFE534D42, "SMB"},
     {0x00C36400, "CephFS"},
     {0x0BD00BD0, "Lustre"},
     {0x47504653, "GPFS"},
     {0x19830326, "BeeGFS"},
     {0xAAD7AAEA, "PanFS"},
     {0x20030528, "OrangeFS"},
     {0x5346414F, "AFS"},
     {0x6B414653, "AFS"},
     {0x73757245, "Coda"},
     {0x7461636F, "OCFS2"},
     {0x01161970, "GFS2"},
     {0xBEEFDEAD, "StorNext"}}};

constexpr std::uint64_t fuse_kind = 0x65735546;  // linux/magic.h

/// What FUSE serves from elsewhere, by its programs' names for themselves. Others, such as
/// fuse-overlayfs in containers, have their files here.
constexpr std::array<std::string_view, 16> network_fuse{
    "sshfs", "s3fs",      "gcsfuse",       "goofys",  "rclone", "blobfuse", "glusterfs", "juicefs",
    "ceph",  "seaweedfs", "mountpoint-s3", "moosefs", "mfs",    "davfs",    "alluxio",   "hdfs"};

}  // namespace

std::string network_filesystem_named(std::uint64_t f_type, const std::string& mounted_as) {
    for (const auto& [kind, name] : network_kinds)
        if (kind == f_type) return std::string(name);
    constexpr std::string_view fuse = "fuse.";
    if (f_type != fuse_kind || !mounted_as.starts_with(fuse)) return "";
    const std::string program = mounted_as.substr(fuse.size());
    const bool elsewhere =
        std::any_of(network_fuse.begin(), network_fuse.end(),
                    [&](std::string_view one) { return program.starts_with(one); });
    return elsewhere ? program : "";
}

// `36 35 98:0 /root /at rw,noatime master:1 - ext3 /dev/root rw` (proc_pid_mountinfo(5))
std::string mounted_as_in(const std::string& mountinfo, unsigned major, unsigned minor) {
    const std::string device = std::to_string(major) + ":" + std::to_string(minor);
    std::istringstream lines(mountinfo);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string id, parent, its_device, word;
        if (!(words >> id >> parent >> its_device) || its_device != device) continue;
        while (words >> word && word != "-") {
        }
        if (words >> word) return word;
    }
    return "";
}

std::string network_filesystem_of(const std::filesystem::path& folder) {
    struct statfs filesystem {};
    struct stat place {};
    if (::statfs(folder.c_str(), &filesystem) != 0 || ::stat(folder.c_str(), &place) != 0)
        return "";
    const auto kind = static_cast<std::uint32_t>(
        filesystem.f_type);  // some are negative where it is a 32-bit number
    std::ostringstream mounts;
    if (kind == fuse_kind) mounts << std::ifstream("/proc/self/mountinfo").rdbuf();
    return network_filesystem_named(
        kind, mounted_as_in(mounts.str(), major(place.st_dev), minor(place.st_dev)));
}

}  // namespace servetune
