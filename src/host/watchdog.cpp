// SPDX-License-Identifier: Apache-2.0
#include "process_table.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "start_program.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>
#include <thread>

namespace servetune {

/// What a tuner tells its watchdog of one process.
struct WatchedGroup {
    std::array<char, 64>
        token{};    ///< the value of SERVETUNE_GROUP in its environment, ended by a NUL
    int group = 0;  ///< 0: not started yet
    std::uint64_t start_ticks = 0;  ///< of the leader, since boot; nothing of its is older
    bool ended = false;             ///< not to be watched any more
};

inline constexpr std::size_t most_watched_groups = 250;

/// The life of a watchdog's process, from its fork on: reads `WatchedGroup`s from the socket `from`
/// until the other end is closed, then ends what is still watched and exits. Calls only what is
/// safe after a fork in a program with threads: it asks for no memory and takes no lock.
[[noreturn]] void be_watchdog(int from, std::chrono::milliseconds stop_within);

namespace {

using std::chrono::milliseconds;

milliseconds monotonic_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return milliseconds(now.tv_sec * 1000 + now.tv_nsec / 1'000'000);
}

void sleep_for(milliseconds time) {
    const timespec pause{time.count() / 1000, (time.count() % 1000) * 1'000'000};
    nanosleep(&pause, nullptr);
}

/// All that are watched and not ended.
class WatchedGroups {
public:
    void hear(const WatchedGroup& told) {
        const auto end = groups_.begin() + std::ptrdiff_t(count_);
        auto* const known = std::find_if(
            groups_.begin(), end, [&](const WatchedGroup& one) { return one.token == told.token; });
        if (known != end && told.ended) *known = groups_[--count_];
        else if (known != end) *known = told;
        else if (!told.ended && count_ < groups_.size()) groups_[count_++] = told;
    }
    [[nodiscard]] bool empty() const { return count_ == 0; }

    /// Whether a process is of one of them: by its group, or by the mark in its environment where
    /// it has left the group.
    [[nodiscard]] bool have(const RunningProcess& one) const {
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
        const Descriptor file = open_of_process(id, "environ");
        std::array<char, 4096> buffer{};
        std::array<char, 64> value{};
        std::size_t at = 0;  // within the variable that is being read
        bool fits = true;
        bool found = false;
        for (ssize_t got = 0; !found && (got = read(file.id(), buffer.data(), buffer.size())) > 0;)
            for (ssize_t i = 0; i < got && !found; ++i) {
                const char c = buffer[std::size_t(i)];
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
        return found;
    }
    [[nodiscard]] bool watched_token(const std::array<char, 64>& token) const {
        return std::any_of(groups_.begin(), groups_.begin() + std::ptrdiff_t(count_),
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
            if (std::from_chars(name, name + std::strlen(name), id).ec != std::errc() || id == self)
                continue;
            if (const auto seen = running_process(id); seen && !seen->dead) use(*seen);
        }
    close(folder);
}

/// Signals each process of the groups once and looks again, less and less often, until none is left
/// or `patience` is over. True: none is left.
bool signal_all(const WatchedGroups& groups, int number, milliseconds patience) {
    // One that becomes another program in the moment when it is looked at shows no environment:
    // none must be seen three times.
    constexpr int sure = 3;
    constexpr milliseconds longest_pause(50);
    std::array<RunningProcess, 1024> signalled{};
    std::size_t count = 0;
    const milliseconds deadline = monotonic_now() + patience;
    int unseen = 0;
    for (milliseconds pause(1); unseen < sure; pause = std::min(2 * pause, longest_pause)) {
        bool any = false;
        for_each_process([&](const RunningProcess& one) {
            if (!groups.have(one)) return;
            any = true;
            for (std::size_t i = 0; i < count; ++i)
                if (signalled[i].id == one.id && signalled[i].start_ticks == one.start_ticks)
                    return;
            if (count < signalled.size()) signalled[count++] = one;
            signal_process(one, number);
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

struct Watchdog::State {
    explicit State(std::chrono::milliseconds its_stop_within) : stop_within(its_stop_within) {}

    void start() {
        const auto fail = [] {
            throw IoError("cannot start a watchdog for engines: " +
                          std::generic_category().message(errno));
        };
        std::array<int, 2> ends{};
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) fail();
        Descriptor ours(ends[0]);
        const Descriptor its(ends[1]);
        {
            const SignalsBlocked blocked;  // no handler of this program's runs in the child
            id = fork();
            if (id == 0) be_watchdog(its.id(), stop_within);
        }
        if (id < 0) {
            id = 0;
            fail();
        }
        to = std::move(ours);
        for (const auto& [token, group] : watched) (void)tell(group);
    }

    [[nodiscard]] bool tell(const WatchedGroup& group) const {
        return to.id() >= 0 && send(to.id(), &group, sizeof group, MSG_NOSIGNAL) ==
                                   static_cast<ssize_t>(sizeof group);
    }

    /// Its end is waited for: it has nothing left to do. Where it has, it ends by itself.
    void finish() {
        to.reset();
        for (int i = 0; id > 0 && i < 1000 && waitpid(id, nullptr, WNOHANG) == 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        id = 0;
    }

    const std::chrono::milliseconds stop_within;
    mutable std::mutex mutex{};
    Descriptor to{};
    int id = 0;
    std::map<std::string, WatchedGroup> watched{};
};

Watchdog::Watchdog(std::chrono::milliseconds stop_within)
    : state_(std::make_unique<State>(stop_within)) {}
Watchdog::~Watchdog() { state_->finish(); }

int Watchdog::id() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->id;
}

void Watchdog::watch(const std::string& token) {
    const std::scoped_lock lock(state_->mutex);
    WatchedGroup group;
    if (token.size() >= group.token.size())
        throw UsageError("a watchdog's tokens have at most 63 characters, got " + token);
    if (state_->watched.size() >= most_watched_groups)
        throw UsageError("a watchdog watches at most " + std::to_string(most_watched_groups) +
                         " processes at once");
    token.copy(group.token.data(), token.size());
    state_->watched[token] = group;
    if (state_->tell(group)) return;
    state_->finish();  // none has been needed, or somebody has killed it
    try {
        state_->start();
    } catch (...) {
        state_->watched.erase(token);
        throw;
    }
}

void Watchdog::started(const std::string& token, int group, std::uint64_t start_ticks) noexcept {
    const std::scoped_lock lock(state_->mutex);
    auto* known = entry_in(state_->watched, token);
    if (known == nullptr) return;
    known->group = group;
    known->start_ticks = start_ticks;
    (void)state_->tell(*known);
}

void Watchdog::ended(const std::string& token) noexcept {
    const std::scoped_lock lock(state_->mutex);
    const auto known = state_->watched.find(token);
    if (known == state_->watched.end()) return;
    known->second.ended = true;
    (void)state_->tell(known->second);
    state_->watched.erase(known);
}

}  // namespace servetune
