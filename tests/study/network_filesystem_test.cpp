// SPDX-License-Identifier: Apache-2.0
// Where a journal is not written: filesystems that other machines see too.
#include "support/in_child.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/study_lock.hpp"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

template <class Body>
void fuse_answer(int fuse, const fuse_in_header& request, const Body& body) {
    std::array<char, sizeof(fuse_out_header) + sizeof(Body)> bytes{};
    const fuse_out_header header{sizeof bytes, 0, request.unique};
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
    (void)!write(fuse, bytes.data(), bytes.size());
}

/// Serves one empty folder, and nothing in it, until it is killed.
[[noreturn]] void serve_folder(int fuse) {
    std::array<char, FUSE_MIN_READ_BUFFER + 4096> bytes{};
    for (;;) {
        const ssize_t got = read(fuse, bytes.data(), bytes.size());
        if (got < 0 && (errno == EINTR || errno == ENOENT)) continue;
        if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) _exit(0);
        fuse_in_header request{};
        std::memcpy(&request, bytes.data(), sizeof request);
        if (request.opcode == FUSE_INIT) {
            fuse_init_out init{};
            init.major = FUSE_KERNEL_VERSION;
            init.minor = FUSE_KERNEL_MINOR_VERSION;
            init.max_write = 4096;
            fuse_answer(fuse, request, init);
        } else if (request.opcode == FUSE_GETATTR) {
            fuse_attr_out attributes{};
            attributes.attr.ino = 1;
            attributes.attr.mode = S_IFDIR | 0777;
            attributes.attr.nlink = 2;
            fuse_answer(fuse, request, attributes);
        } else if (request.opcode == FUSE_STATFS) fuse_answer(fuse, request, fuse_statfs_out{});
        else if (request.opcode != FUSE_FORGET) {
            const fuse_out_header refused{sizeof refused, -ENOENT, request.unique};
            (void)!write(fuse, &refused, sizeof refused);
        }
    }
}

}  // namespace

TEST_CASE("network filesystem: known by the kernel's number, those of FUSE by their program") {
    CHECK(network_filesystem_named(0x6969, "nfs4") == "NFS");
    CHECK(network_filesystem_named(0xFF534D42, "cifs") == "CIFS");
    CHECK(network_filesystem_named(0x0BD00BD0, "lustre") == "Lustre");
    CHECK(network_filesystem_named(0x00C36400, "ceph") == "CephFS");
    CHECK(network_filesystem_named(0x47504653, "gpfs") == "GPFS");
    CHECK(network_filesystem_named(0x65735546, "fuse.sshfs") == "sshfs");
    CHECK(network_filesystem_named(0x65735546, "fuse.juicefs") == "juicefs");
    for (const char* here : {"fuse.fuse-overlayfs", "fuseblk", "virtiofs", ""})
        CHECK(network_filesystem_named(0x65735546, here).empty());
    CHECK(network_filesystem_named(0xEF53, "ext4").empty());
    CHECK(network_filesystem_named(0x01021994, "tmpfs").empty());
    const std::string mounts =
        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
        "36 22 0:47 / /mnt/x rw,nosuid shared:7 master:1 - fuse.sshfs me@host: rw,user_id=0\n";
    CHECK(mounted_as_in(mounts, 0, 47) == "fuse.sshfs");
    CHECK(mounted_as_in(mounts, 8, 1) == "ext4");
    CHECK(mounted_as_in(mounts, 8, 2).empty());
    const TemporaryFolder folder;
    CHECK(network_filesystem_of(folder.path()).empty());
}

TEST_CASE("network filesystem: a journal there is refused, with what to do") {
    const TemporaryFolder folder;
    const std::string got = in_child([&]() -> std::string {
        const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        const std::string options =
            "fd=" + std::to_string(fuse) + ",rootmode=40000,user_id=0,group_id=0";
        if (fuse < 0 || unshare(CLONE_NEWNS) != 0 ||
            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("host:", folder.path().c_str(), "fuse.sshfs", 0, options.c_str()) != 0)
            return "skipped: no FUSE can be mounted here";
        const pid_t server = fork();
        if (server == 0) serve_folder(fuse);
        std::string said;
        try {
            (void)SqliteJournal::open(folder.path(),
                                      {"study", {{"space.seqs", "integer 1..4"}}, "0.1.0"});
        } catch (const Error& error) {
            said = error.what();
        }
        kill(server, SIGKILL);
        (void)waitpid(server, nullptr, 0);
        return said;
    });
    if (got.starts_with("skipped")) std::cout << got << "\n";
    else
        CHECK(got == "the study's folder " + folder.path().string() +
                         " is on a network filesystem (sshfs), where a journal can be read but not "
                         "written: SQLite's write-ahead log works on "
                         "one machine only; choose a --directory on a disk of this machine (a pod: "
                         "a volume of block storage), and copy the "
                         "folder there to go on with its study");
}
