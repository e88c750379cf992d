// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/watchdog.hpp"

#include "base/descriptor.hpp"
#include "servetune/error.hpp"
#include "signals_blocked.hpp"
#include "watchdog_process.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

namespace servetune {

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
    const auto known = state_->watched.find(token);
    if (known == state_->watched.end()) return;
    known->second.group = group;
    known->second.start_ticks = start_ticks;
    (void)state_->tell(known->second);
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
