// SPDX-License-Identifier: Apache-2.0
#include "study_lock.hpp"

#include "servetune/error.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace servetune {
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

/// Open descriptors until all went well.
class Opened {
public:
    explicit Opened(int descriptor) : descriptor_(descriptor) {}
    ~Opened() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    [[nodiscard]] int id() const { return descriptor_; }
    int release() { return std::exchange(descriptor_, -1); }

private:
    int descriptor_;
};

/// Who stands in the file now, read anew as another machine may have written it.
std::optional<LockHolder> holder_now(const fs::path& file) {
    const Opened opened(::open(file.c_str(), O_RDONLY | file_flags));
    return opened.id() < 0 ? std::nullopt : LockHolder::in(lock_text(opened.id()));
}

std::string seconds_in(std::chrono::milliseconds time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

/// A thread that no signal of the program is delivered to.
template <class Body>
std::jthread quiet_thread(Body body) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        std::jthread started(std::move(body));
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return started;
    } catch (const std::system_error& error) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw IoError(std::string("cannot start the thread that keeps the study's lock: ") +
                      error.what());
    }
}

}  // namespace

StudyLock::StudyLock(fs::path folder, const Say& say, LockBeats beats, LockHolder self)
    : folder_(std::move(folder)),
      file_(folder_ / "study.lock"),
      beats_(beats),
      self_(std::move(self)) {
    Opened opened(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.id() < 0)
        throw IoError("cannot open the study's folder " + folder_.string() + ": " +
                      message_of_errno(errno));
    // Any other error: this filesystem locks no folders, then the file alone counts.
    if (flock_error(opened.id()) == EWOULDBLOCK) {
        const Opened file(::open(file_.c_str(), O_RDONLY | file_flags));
        const std::string holder = file.id() < 0 ? "" : process_in(file.id());
        refuse_second(holder, holder.empty() ? folder_ : file_);
    }
    take_file();
    try {
        wait_for_silence(say);
        write_self();
        beating_ = quiet_thread([this](const std::stop_token& over) { beat(over); });
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
        Opened opened(::open(file_.c_str(), O_RDWR | O_CREAT | file_flags, 0644));
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
