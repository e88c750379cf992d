// SPDX-License-Identifier: Apache-2.0
#include "study_lock.hpp"
#include "base/files.hpp"
#include "base/waiting.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <iomanip>
#include <random>
#include <sstream>
#include <string_view>
#include <system_error>
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

namespace {

constexpr int digits_of_beats = 20;  // of the largest number

std::string boot_of_machine() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    std::getline(file, text);
    return text;
}

std::string name_of_machine() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0')
        return "an unnamed machine";
    std::string text(name.data());
    for (char& c : text)
        if (c <= ' ') c = '_';  // a word of a line
    return text;
}

/// The rest of the next line, which begins with `key` and a space; nothing: it does not.
std::optional<std::string> said_next(std::istream& lines, const std::string& key) {
    std::string line;
    if (!std::getline(lines, line) || !line.starts_with(key + " ")) return std::nullopt;
    return line.substr(key.size() + 1);
}

}  // namespace

LockHolder LockHolder::here() {
    std::random_device random;
    std::ostringstream start;
    for (int i = 0; i < 4; ++i) start << std::hex << std::setw(8) << std::setfill('0') << random();
    return {
        std::to_string(::getpid()), name_of_machine(), boot_of_machine(), start.str(), 0, false};
}

std::optional<LockHolder> LockHolder::in(const std::string& text) {
    std::istringstream lines(text);
    LockHolder found;
    if (!std::getline(lines, found.process) || found.process.empty()) return std::nullopt;
    const auto host = said_next(lines, "host");
    const auto boot = said_next(lines, "boot");
    const auto start = said_next(lines, "start");
    std::string beats;
    if (!host || !boot || !start || !std::getline(lines, beats)) return std::nullopt;
    found.ended = beats.starts_with("ended ");
    if (!found.ended && !beats.starts_with("beats ")) return std::nullopt;
    std::istringstream number(beats.substr(6));
    if (!(number >> found.beats)) return std::nullopt;
    found.host = *host;
    found.boot = *boot;
    found.start = *start;
    return found;
}

std::string LockHolder::text() const {
    std::ostringstream out;
    out << process << "\nhost " << host << "\nboot " << boot << "\nstart " << start
        << (ended ? "\nended " : "\nbeats ") << std::setw(digits_of_beats) << std::setfill('0')
        << beats << '\n';
    return out.str();
}

std::string LockHolder::name() const { return "process " + process + " on " + host; }

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

std::string lock_text(int descriptor) {
    std::array<char, 1024> bytes{};
    const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), 0);
    return {bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

/// The process that wrote itself into the lock file; empty: unknown.
std::string process_in(int descriptor) {
    const std::string text = lock_text(descriptor);
    const std::string line = text.substr(0, text.find('\n'));
    return line.find_first_not_of("0123456789") == std::string::npos ? line : "";
}

[[noreturn]] void refuse_second(const std::string& holder, const fs::path& held) {
    throw IoError("another process is running this study (" +
                  (holder.empty() ? "it" : "process " + holder) + " holds " + held.string() +
                  "); wait for it, or choose another --directory");
}

/// Who stands in the file now, read anew as another machine may have written it.
std::optional<LockHolder> holder_now(const fs::path& file) {
    const Descriptor opened(::open(file.c_str(), O_RDONLY | file_flags));
    return opened.id() < 0 ? std::nullopt : LockHolder::in(lock_text(opened.id()));
}

std::string seconds_in(std::chrono::milliseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace

StudyLock::StudyLock(fs::path folder, const Say& say, LockBeats beats, LockHolder self)
    : folder_(std::move(folder)),
      file_(folder_ / "study.lock"),
      beats_(beats),
      self_(std::move(self)) {
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
    try {
        wait_for_silence(say);
        write_self();
        const SignalsBlocked blocked;  // its thread hears no signal of the program
        beating_ = std::jthread([this](const std::stop_token& over) { beat(over); });
    } catch (...) {
        ::close(std::exchange(file_lock_, -1));
        throw;
    }
    folder_lock_ = opened.release();
}

StudyLock::~StudyLock() {
    beating_ = {};
    if (const auto now = holder_now(file_); now && now->start == self_.start) {
        self_.ended = true;
        write_self();
    }
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
    const std::lock_guard<std::mutex> guard(mutex_);
    const bool held = holds_file();
    if (!held) take_file();
    if (const auto now = holder_now(file_); now && now->start != self_.start)
        throw IoError(
            "this study was taken over by " + now->name() + ", as " + file_.string() +
            " says: this process was silent for " + seconds_in(beats_.silent_after) +
            " or more, so nothing more is recorded here; wait for the other one, then run again");
    if (!held) write_self();
}

/// Returns once no process of another machine writes. The clocks of two machines differ, so no time
/// is compared: only whether the count goes on.
void StudyLock::wait_for_silence(const Say& say) const {
    const auto found = holder_now(file_);
    if (!found || found->ended) return;
    // Of this boot of this machine: its locks are ours, so it is dead.
    if (!self_.boot.empty() && found->boot == self_.boot) return;
    if (say)
        say("this study was run by " + found->name() +
            " and did not end in order there; waiting for " + seconds_in(beats_.silent_after) +
            " to see whether it still runs");
    const auto until = std::chrono::steady_clock::now() + beats_.silent_after;
    while (std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::min(beats_.every, std::chrono::milliseconds(500)));
        const auto now = holder_now(file_);
        if (now && now->ended) return;
        if (now && (now->start != found->start || now->beats != found->beats))
            throw IoError("another process is running this study (" + now->name() +
                          " goes on writing to " + file_.string() +
                          "); wait for it, or choose another --directory");
    }
}

/// A full disk is no reason to stop here: what is recorded will say so.
void StudyLock::write_self() {
    const std::string text = self_.text();
    if (::pwrite(file_lock_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
        (void)!::ftruncate(file_lock_, static_cast<off_t>(text.size()));
}

void StudyLock::beat(const std::stop_token& over) {
    std::mutex sleeping;
    std::condition_variable_any wakes;
    for (;;) {
        std::unique_lock<std::mutex> lock(sleeping);
        if (wakes.wait_for(lock, over, beats_.every, [] { return false; }); over.stop_requested())
            return;
        const std::lock_guard<std::mutex> guard(mutex_);
        // Another name stays: `keep` says so.
        if (const auto now = LockHolder::in(lock_text(file_lock_));
            now && now->start != self_.start)
            continue;
        ++self_.beats;
        write_self();
    }
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
        return;
    }
    refuse("another process keeps removing it");
}

}  // namespace servetune
