// SPDX-License-Identifier: Apache-2.0
#include "study_lock.hpp"
#include "base/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace servetune {

std::string network_filesystem_named(std::uint32_t f_type) {
    // From linux/magic.h; those that are not in the kernel from src/stat.c of GNU coreutils.
    constexpr std::array<std::pair<std::uint32_t, std::string_view>, 8> kinds{
        {{0x6969, "NFS"},
         {0x517B, "SMB"},
         {0xFF534D42, "CIFS"},
         {0xFE534D42, "SMB"},
         {0x00C36400, "CephFS"},
         {0x0BD00BD0, "Lustre"},
         {0x47504653, "GPFS"},
         {0x19830326, "BeeGFS"}}};
    for (const auto& [kind, name] : kinds)
        if (kind == f_type) return std::string(name);
    return "";
}

std::string network_filesystem_of(const std::filesystem::path& folder) {
    struct statfs filesystem {};
    if (::statfs(folder.c_str(), &filesystem) != 0) return "";
    // Some are negative where it is a 32-bit number.
    return network_filesystem_named(static_cast<std::uint32_t>(filesystem.f_type));
}

namespace {

namespace fs = std::filesystem;

constexpr int file_flags =
    O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;  // a link leads elsewhere, a FIFO would wait

std::string message_of_errno(int error) { return std::generic_category().message(error); }

/// 0, or the error. EWOULDBLOCK: another process has the lock.
int flock_error(int descriptor) {
    for (;;) {
        if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return 0;
        if (errno != EINTR) return errno;
    }
}

/// The process that wrote itself into the lock file; empty: unknown.
std::string process_in(int descriptor) {
    std::array<char, 32> bytes{};
    const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), 0);
    const std::string text(bytes.data(), got > 0 ? std::size_t(got) : 0);
    const std::string line = text.substr(0, text.find('\n'));
    return line.find_first_not_of("0123456789") == std::string::npos ? line : "";
}

[[noreturn]] void refuse_second(const std::string& holder, const fs::path& held) {
    throw IoError("another process is running this study (" +
                  (holder.empty() ? "it" : "process " + holder) + " holds " + held.string() +
                  "); wait for it, or choose another --directory");
}

}  // namespace

StudyLock::StudyLock(fs::path folder) : folder_(std::move(folder)), file_(folder_ / "study.lock") {
    Descriptor opened(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.id() < 0)
        throw IoError("cannot open the study's folder " + folder_.string() + ": " +
                      message_of_errno(errno));
    // Any other error: this filesystem locks no folders, then the file alone counts.
    if (flock_error(opened.id()) == EWOULDBLOCK) {
        const Descriptor file(::open(file_.c_str(), O_RDONLY | file_flags));
        const std::string holder = file.id() < 0 ? "" : process_in(file.id());
        refuse_second(holder, holder.empty() ? folder_ : file_);
    }
    take_file();
    folder_lock_ = opened.release();
}

StudyLock::~StudyLock() {
    if (file_lock_ >= 0) ::close(file_lock_);
    if (folder_lock_ >= 0) ::close(folder_lock_);
}

bool StudyLock::holds_file() const {
    struct stat ours {};
    struct stat named {};
    return file_lock_ >= 0 && ::fstat(file_lock_, &ours) == 0 &&
           ::lstat(file_.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

void StudyLock::keep() {
    if (!holds_file()) take_file();
}

void StudyLock::take_file() {
    const auto refuse = [&](const std::string& why) {
        throw IoError("cannot lock " + file_.string() + ": " + why);
    };
    constexpr int most_tries = 10;  // somebody may remove it between opening and locking
    for (int i = 0; i < most_tries; ++i) {
        Descriptor opened(::open(file_.c_str(), O_RDWR | O_CREAT | file_flags, 0644));
        if (opened.id() < 0 && errno == ELOOP) refuse("it is a symbolic link; remove it");
        if (opened.id() < 0)
            throw IoError("cannot write " + file_.string() + ": " + message_of_errno(errno));
        struct stat what {};
        if (::fstat(opened.id(), &what) != 0 || !S_ISREG(what.st_mode))
            refuse("it is not a regular file; remove it");
        const int error = flock_error(opened.id());
        if (error == EWOULDBLOCK) refuse_second(process_in(opened.id()), file_);
        if (error != 0)
            refuse("flock says '" + message_of_errno(error) +
                   "'; a study needs a filesystem with locks: choose another --directory on a disk "
                   "of this machine");
        if (file_lock_ >= 0) ::close(file_lock_);
        file_lock_ = opened.release();
        if (!holds_file()) continue;
        // For people. A full disk is no reason to stop here: what is recorded will say so.
        const std::string self = std::to_string(::getpid()) + "\n";
        if (::pwrite(file_lock_, self.data(), self.size(), 0) == static_cast<ssize_t>(self.size()))
            (void)!::ftruncate(file_lock_, static_cast<off_t>(self.size()));
        return;
    }
    refuse("another process keeps removing it");
}

}  // namespace servetune
