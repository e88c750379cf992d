// SPDX-License-Identifier: Apache-2.0
#include "watchdog_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string_view>

namespace servetune {
namespace {

using std::chrono::milliseconds;

/// A process as /proc has it, as far as a watchdog needs it.
struct SeenByWatchdog {
    int id = 0;
    int group = 0;
    std::uint64_t start_ticks = 0;
};

milliseconds monotonic_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return milliseconds(now.tv_sec * 1000 + now.tv_nsec / 1'000'000);
}

void sleep_for(milliseconds time) {
    const timespec pause{time.count() / 1000, (time.count() % 1000) * 1'000'000};
    nanosleep(&pause, nullptr);
}

/// Opens /proc/ID/NAME; -1 where the process has gone.
int open_of_process(int id, std::string_view name) {
    std::array<char, 64> path{};
    constexpr std::string_view folder = "/proc/";
    char* end = std::copy(folder.begin(), folder.end(), path.data());
    end = std::to_chars(end, path.data() + 32, id).ptr;
    *end++ = '/';
    end = std::copy(name.begin(), name.end(), end);
    *end = '\0';
    return open(path.data(), O_RDONLY | O_CLOEXEC);
}

/// proc(5): "pid (name) state parent group session ... start time", the 22nd; the name may hold
/// anything. False where it has gone or is a zombie.
bool see_process(int id, SeenByWatchdog& seen) {
    std::array<char, 1024> buffer{};
    const int file = open_of_process(id, "stat");
    if (file < 0) return false;
    const ssize_t got = read(file, buffer.data(), buffer.size());
    close(file);
    std::string_view text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string_view::npos || text.size() < name_end + 3) return false;
    text.remove_prefix(name_end + 2);
    if (text.front() == 'Z' || text.front() == 'X') return false;
    seen = {.id = id};
    for (int field = 3; field <= 22; ++field) {
        const std::string_view word = text.substr(0, text.find(' '));
        if (field == 5) std::from_chars(word.data(), word.data() + word.size(), seen.group);
        if (field == 22) std::from_chars(word.data(), word.data() + word.size(), seen.start_ticks);
        text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
    return seen.start_ticks > 0;
}

/// All that are watched and not ended.
class WatchedGroups {
public:
    void hear(const WatchedGroup& told) {
        const auto end = groups_.begin() + static_cast<std::ptrdiff_t>(count_);
        auto* const known = std::find_if(
            groups_.begin(), end, [&](const WatchedGroup& one) { return one.token == told.token; });
        if (known != end && told.ended) *known = groups_[--count_];
        else if (known != end) *known = told;
        else if (!told.ended && count_ < groups_.size()) groups_[count_++] = told;
    }
    [[nodiscard]] bool empty() const { return count_ == 0; }

    /// Whether a process is of one of them: by its group, or by the mark in its environment where
    /// it has left the group.
    [[nodiscard]] bool have(const SeenByWatchdog& one) const {
        bool any_as_old = false;
        for (std::size_t i = 0; i < count_; ++i) {
            if (one.start_ticks < groups_[i].start_ticks) continue;  // descendants are younger
            if (groups_[i].group != 0 && one.group == groups_[i].group) return true;
            any_as_old = true;
        }
        return any_as_old && marked(one.id);
    }

private:
    /// Reads the environment in pieces: it may be longer than what is kept of it here.
    [[nodiscard]] bool marked(int id) const {
        constexpr std::string_view name = "SERVETUNE_GROUP=";
        const int file = open_of_process(id, "environ");
        if (file < 0) return false;
        std::array<char, 4096> buffer{};
        std::array<char, 64> value{};
        std::size_t at = 0;  // within the variable that is being read
        bool fits = true;
        bool found = false;
        for (ssize_t got = 0; !found && (got = read(file, buffer.data(), buffer.size())) > 0;)
            for (ssize_t i = 0; i < got && !found; ++i) {
                const char c = buffer[static_cast<std::size_t>(i)];
                if (c == '\0') {
                    found = fits && at >= name.size() && watched_token(value);
                    value = {};
                    at = 0;
                    fits = true;
                    continue;
                }
                if (at < name.size()) fits = fits && c == name[at];
                else if (at - name.size() + 1 < value.size()) value[at - name.size()] = c;
                else fits = false;
                ++at;
            }
        close(file);
        return found;
    }
    [[nodiscard]] bool watched_token(const std::array<char, 64>& token) const {
        return std::any_of(groups_.begin(), groups_.begin() + static_cast<std::ptrdiff_t>(count_),
                           [&](const WatchedGroup& one) { return one.token == token; });
    }

    std::array<WatchedGroup, most_watched_groups> groups_{};
    std::size_t count_ = 0;
};

/// Calls `use` with every process of this machine that lives.
template <class Use>
void for_each_process(const Use& use) {
    struct Entry {  // linux_dirent64, see getdents64(2)
        std::uint64_t inode;
        std::int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[1];  // NOLINT(modernize-avoid-c-arrays): as the kernel has it
    };
    const int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    const int self = getpid();
    alignas(Entry) std::array<char, 8192> buffer{};
    for (long got = 0; (got = syscall(SYS_getdents64, folder, buffer.data(), buffer.size())) > 0;)
        for (long at = 0; at < got;) {
            const auto* entry = reinterpret_cast<const Entry*>(buffer.data() + at);
            at += entry->length;
            const char* name = static_cast<const char*>(entry->name);
            int id = 0;
            SeenByWatchdog seen;
            if (std::from_chars(name, name + std::strlen(name), id).ec == std::errc() &&
                id != self && see_process(id, seen))
                use(seen);
        }
    close(folder);
}

/// Signals a process if it is still that one; nobody else who was given its id meanwhile.
void signal_seen(const SeenByWatchdog& one, int number) {
    const auto handle = static_cast<int>(syscall(SYS_pidfd_open, one.id, 0U));
    const bool no_handles = handle < 0 && errno == ENOSYS;
    SeenByWatchdog now;
    if (see_process(one.id, now) && now.start_ticks == one.start_ticks) {
        if (no_handles) kill(one.id, number);
        else if (handle >= 0) (void)syscall(SYS_pidfd_send_signal, handle, number, nullptr, 0U);
    }
    if (handle >= 0) close(handle);
}

/// Signals each process of the groups once and looks again, less and less often, until none is left
/// or `patience` is over. True: none is left.
bool signal_all(const WatchedGroups& groups, int number, milliseconds patience) {
    // One that becomes another program in the moment when it is looked at shows no environment:
    // none must be seen three times.
    constexpr int sure = 3;
    constexpr milliseconds longest_pause(50);
    std::array<SeenByWatchdog, 1024> signalled{};
    std::size_t count = 0;
    const milliseconds deadline = monotonic_now() + patience;
    int unseen = 0;
    for (milliseconds pause(1); unseen < sure; pause = std::min(2 * pause, longest_pause)) {
        bool any = false;
        for_each_process([&](const SeenByWatchdog& one) {
            if (!groups.have(one)) return;
            any = true;
            for (std::size_t i = 0; i < count; ++i)
                if (signalled[i].id == one.id && signalled[i].start_ticks == one.start_ticks)
                    return;
            if (count < signalled.size()) signalled[count++] = one;
            signal_seen(one, number);
        });
        unseen = any ? 0 : unseen + 1;
        if (unseen < sure && monotonic_now() >= deadline) return unseen > 0;
        if (unseen < sure) sleep_for(pause);
    }
    return true;
}

/// No terminal, no signals but KILL, no files but the socket, which is moved to descriptor 3, and
/// no folder that somebody may want to unmount.
void leave_the_tuner(int from) {
    setsid();
    struct sigaction deaf {};
    deaf.sa_handler = SIG_IGN;
    for (int number = 1; number < 32; ++number) sigaction(number, &deaf, nullptr);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    (void)!chdir("/");
    (void)prctl(PR_SET_NAME, "servetune-watch");
    if (from != 3) dup2(from, 3);
    const int null = open("/dev/null", O_RDWR);
    for (int standard = 0; standard < 3; ++standard)
        if (null < 0) close(standard);
        else dup2(null, standard);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 4U, ~0U, 0U) == 0) return;
#endif
    const long most = std::clamp(sysconf(_SC_OPEN_MAX), 256L, 1L << 20L);
    for (int other = 4; other < most; ++other) close(other);
}

}  // namespace

[[noreturn]] void be_watchdog(int from, milliseconds stop_within) {
    leave_the_tuner(from);
    WatchedGroups groups;
    for (WatchedGroup told;;) {
        const ssize_t got = recv(3, &told, sizeof told, 0);
        if (got == static_cast<ssize_t>(sizeof told)) groups.hear(told);
        else if (got >= 0 || errno != EINTR) break;
    }
    const milliseconds after_kill = std::max(stop_within, milliseconds(100));
    if (!groups.empty() && !signal_all(groups, SIGTERM, stop_within))
        (void)signal_all(groups, SIGKILL, after_kill);
    _exit(0);
}

}  // namespace servetune
