// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <pwd.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

namespace servetune {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;   // as Linux follows
constexpr int most_parts = 100;  // names to try beside a file

/// The number of a descriptor of this process that `link` in /proc stands for.
std::optional<int> own_descriptor(const fs::path& link) {
    std::error_code not_there;
    const fs::path folder = fs::canonical(link.parent_path(), not_there);
    if (not_there || folder != "/proc/" + std::to_string(::getpid()) + "/fd") return std::nullopt;
    const std::string name = link.filename().string();
    if (name.empty() || name.size() > 9 ||
        name.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    return std::stoi(name);
}

/// No SIGPIPE and no SIGXFSZ from what this thread writes meanwhile: a reader that has gone and a
/// file that is too large are errors of the write.
class NoSignalOfWrites {
public:
    NoSignalOfWrites() {
        sigset_t both{};
        sigemptyset(&both);
        sigaddset(&both, SIGPIPE);
        sigaddset(&both, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &both, &before_);
        sigemptyset(&own_);
        for (const int number : {SIGPIPE, SIGXFSZ})
            if (sigismember(&before_, number) == 0) sigaddset(&own_, number);
    }
    ~NoSignalOfWrites() {
        const int error = errno;
        const timespec at_once{};
        while (sigtimedwait(&own_, nullptr, &at_once) > 0) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = error;
    }
    NoSignalOfWrites(const NoSignalOfWrites&) = delete;
    NoSignalOfWrites& operator=(const NoSignalOfWrites&) = delete;

private:
    sigset_t before_{};
    sigset_t own_{};  ///< those that were not blocked before
};

/// Writes all of it; 0, or the error.
int write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : EIO;
        bytes.remove_prefix(std::size_t(put));
    }
    return 0;
}

[[noreturn]] void cannot_write(const fs::path& file, int error) {
    throw IoError("cannot write " + file.string() + ": " + std::generic_category().message(error));
}

bool same_file(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

std::string with_home(const std::string& path) {
    if (!path.starts_with('~')) return path;
    const auto slash = path.find('/');
    const std::string user = path.substr(1, slash == std::string::npos ? slash : slash - 1);
    const std::string rest = slash == std::string::npos ? "" : path.substr(slash);
    const char* home = user.empty() ? std::getenv("HOME")
                                    : nullptr;  // NOLINT(concurrency-mt-unsafe): nothing sets it
    if (home != nullptr && *home != '\0') return home + rest;
    std::vector<char> buffer(16384);
    passwd entry{};
    passwd* found = nullptr;
    if (user.empty()) ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
    else ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (found == nullptr)
        throw IoError(
            "'" + path + "': " +
            (user.empty() ? "HOME is not set" : "there is no user '" + user + "' on this machine"));
    return found->pw_dir + rest;
}

std::string rest_of(std::istream& stream) {
    std::string result;
    std::array<char, 1U << 16U> part{};
    do {
        stream.read(part.data(), part.size());
        result.append(part.data(), std::size_t(stream.gcount()));
    } while (stream);
    return result;
}

std::string read_file(const fs::path& file) {
    std::error_code unknown;  // then opening it says what is wrong
    if (fs::is_directory(file, unknown))
        throw IoError("cannot read " + file.string() + ": it is a folder");
    std::ifstream stream(file, std::ios::binary);
    if (!stream)
        throw IoError("cannot read " + file.string() + ": " +
                      std::generic_category().message(errno));
    if (fs::is_character_file(file, unknown)) {  // a terminal ends, /dev/zero does not
        constexpr std::size_t most = 64U << 20U;
        std::string content(most, '\0');
        stream.read(content.data(), std::streamsize(most));
        if (stream)
            throw IoError("cannot read " + file.string() + ": it is a device, and has no end");
        content.resize(std::size_t(stream.gcount()));
        return content;
    }
    std::string content = rest_of(stream);
    if (stream.bad()) throw IoError("cannot read " + file.string() + " to its end");
    return content;
}

void OutputFile::fail(int error) const { cannot_write(file_, error); }

OutputFile::OutputFile(const fs::path& file, bool whole)
    : file_(file), target_(file), whole_(whole) {
    struct stat there {};
    const bool exists = ::stat(file.c_str(), &there) == 0;
    if (!exists && errno != ENOENT) fail(errno);  // ENOENT: a new file, or a link to one
    if (exists && S_ISDIR(there.st_mode))
        throw IoError("cannot write " + file.string() + ": it is a folder");
    std::error_code error;
    std::optional<int> own;
    for (int links = 0; !own && fs::is_symlink(fs::symlink_status(target_, error)); ++links) {
        if (links == most_links) fail(ELOOP);
        own = own_descriptor(target_);
        const fs::path named = fs::read_symlink(target_, error);
        if (error) fail(error.value());
        if (!own) target_ = named.is_absolute() ? named : target_.parent_path() / named;
    }
    struct stat behind {};
    regular_ = !exists || S_ISREG(there.st_mode);
    if (own) {
        std::fflush(nullptr);  // what this process printed before comes before
        descriptor_ = ::fcntl(*own, F_DUPFD_CLOEXEC, 3);
        if (descriptor_ < 0) fail(errno);
        regular_ = false;
    } else if (!regular_ ||
               (exists && (::lstat(target_.c_str(), &behind) != 0 || !same_file(there, behind))))
        open_in_place(EBUSY);
    else open_new_part();
}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!part_.empty()) ::unlink(part_.c_str());
}

void OutputFile::open_new_part() {
    struct stat old {};
    const bool replaces = ::lstat(target_.c_str(), &old) == 0;
    // A name that is taken belongs to somebody else, or to a process that was killed: it stays,
    // another name is tried.
    for (int i = 0; descriptor_ < 0 && i < most_parts; ++i) {
        part_ = target_.string() + (i == 0 ? "" : "." + std::to_string(i)) + ".part";
        descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             replaces ? 0600 : 0666);
        if (descriptor_ < 0 && errno != EEXIST) break;
    }
    if (descriptor_ < 0) {
        const int error = errno;
        const std::string last = part_.string();
        part_.clear();
        if (error == EEXIST)
            throw IoError("cannot write " + file_.string() + ": files up to " + last +
                          " are in the way, remove them");
        if (!replaces || (error != EACCES && error != EPERM && error != EROFS)) fail(error);
        return open_in_place(error);
    }
    if (!replaces) return;
    if (::fchown(descriptor_, old.st_uid, old.st_gid) != 0)
        (void)!::fchown(descriptor_, static_cast<uid_t>(-1), old.st_gid);
    (void)::fchmod(descriptor_,
                   old.st_mode & 0777U);  // last: a new owner may read it only when it is his
}

/// `why` it cannot be replaced.
void OutputFile::open_in_place(int why) {
    if (whole_) fail(why);
    // Not blocking: a FIFO waits for its reader below, with an end.
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(reader_patience_seconds);
    do {
        descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        const int error = errno;
        if (descriptor_ >= 0) break;
        struct stat what {};
        if (error != ENXIO || ::stat(file_.c_str(), &what) != 0 || !S_ISFIFO(what.st_mode))
            fail(error);
        if (std::chrono::steady_clock::now() > deadline)
            throw IoError("cannot write " + file_.string() +
                          ": it is a FIFO, and no process has opened it for reading");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    } while (true);
    const int flags = ::fcntl(descriptor_, F_GETFL);
    if (flags >= 0 && ::fcntl(descriptor_, F_SETFL, flags & ~O_NONBLOCK) >= 0 &&
        (!regular_ || ::ftruncate(descriptor_, 0) == 0))
        return;
    const int error = errno;
    ::close(std::exchange(descriptor_, -1));
    fail(error);
}

void OutputFile::write(std::string_view bytes) {
    const NoSignalOfWrites none;
    if (const int error = write_all(descriptor_, bytes); error != 0) fail(error);
}

void OutputFile::commit(const std::function<void()>& last_look) {
    if (regular_ && ::fsync(descriptor_) != 0) fail(errno);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0 && errno != EINTR) fail(errno);
    if (last_look) last_look();
    if (part_.empty()) return;
    if (::rename(part_.c_str(), target_.c_str()) == 0) {
        part_.clear();
        return;
    }
    if (errno != EBUSY) fail(errno);
    // A mount point cannot be replaced, only written.
    const std::string content = read_file(part_);
    open_in_place(EBUSY);
    write(content);
    const fs::path part = std::exchange(part_, fs::path());
    ::unlink(part.c_str());
    commit();
}

NewFile::NewFile(fs::path file)
    : file_(std::move(file)),
      descriptor_(
          ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)) {
    if (descriptor_ >= 0) return;
    if (errno == EEXIST)
        throw UsageError(file_.string() + " is there already; take another name, or remove it");
    cannot_write(file_, errno);
}

NewFile::~NewFile() {
    struct stat made {};
    struct stat there {};
    if (!kept_ && ::fstat(descriptor_, &made) == 0 && ::lstat(file_.c_str(), &there) == 0 &&
        same_file(made, there))
        ::unlink(file_.c_str());
    ::close(descriptor_);
}

void NewFile::write(std::string_view content) {
    if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0)
        cannot_write(file_, errno);
    if (const int error = write_all(descriptor_, content); error != 0) cannot_write(file_, error);
}

void write_plain_file(const fs::path& file, std::string_view content, int more_flags) {
    const Descriptor opened(::open(
        file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | more_flags, 0666));
    const int error = opened.id() < 0 ? errno : write_all(opened.id(), content);
    if (error != 0) cannot_write(file, error);
}

void check_writable(const fs::path& file) {
    struct stat there {};
    const bool exists = ::stat(file.c_str(), &there) == 0;
    if (exists && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) return;
    if (exists && S_ISREG(there.st_mode) && ::access(file.c_str(), W_OK) == 0) return;
    const OutputFile made_and_removed(file);
}

void write_file(const fs::path& file, std::string_view content) {
    OutputFile output(file);
    output.write(content);
    output.commit();
}

}  // namespace servetune
