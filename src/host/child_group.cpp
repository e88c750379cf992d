// SPDX-License-Identifier: Apache-2.0
#include "child_group.hpp"

#include "servetune/detail/host/process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;

/// The groups that were started and are not reaped, for `kill_started_groups`, which may take no
/// lock. One that finds no place here is left to the kernel's word and to the watchdog.
std::array<std::atomic<int>, 1024> started_groups{};
static_assert(std::atomic<int>::is_always_lock_free);

void remember_group(int group) {
    for (std::atomic<int>& place : started_groups) {
        int free = 0;
        if (place.compare_exchange_strong(free, group)) return;
    }
}

void forget_group(int group) {
    for (std::atomic<int>& place : started_groups) {
        int mine = group;
        if (place.compare_exchange_strong(mine, 0)) return;
    }
}

}  // namespace

void kill_started_groups() noexcept {
    for (const std::atomic<int>& place : started_groups)
        if (const int group = place; group > 0) kill(-group, SIGKILL);
}

ChildGroup::ChildGroup(const ChildProgram& program, int output, int answer)
    : id_(start_program(program, output, answer)) {
    remember_group(id_);
    handle_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, id_, 0U)));
}

ChildGroup::~ChildGroup() {
    signal(SIGKILL);
    (void)wait(std::chrono::seconds(2));  // a process that waits for a device does not hear it
    reap();
}

std::optional<int> ChildGroup::exit_code() const {
    const std::scoped_lock lock(mutex_);
    if (reaped_) return reaped_;
    siginfo_t info{};
    const int result = waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (result != 0 && errno == ECHILD)
        return 128;  // somebody else has waited for it: its code is lost
    if (result != 0 || info.si_pid != id_) return std::nullopt;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

bool ChildGroup::wait(std::chrono::milliseconds time) const {
    const auto deadline = Clock::now() + time;
    while (!ended()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        pollfd waiting{handle_.id(), POLLIN, 0};
        (void)poll(
            &waiting, 1,
            handle_.id() >= 0 ? static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)) : 1);
    }
    return true;
}

void ChildGroup::signal(int number) const {
    const std::scoped_lock lock(mutex_);
    if (!reaped_) kill(-id_, number);
}

void ChildGroup::reap() {
    const std::optional<int> code = exit_code();
    const std::scoped_lock lock(mutex_);
    if (!code || reaped_) return;
    forget_group(id_);  // first: its id may be somebody else's once it is waited for
    (void)waitpid(id_, nullptr, WNOHANG);
    reaped_ = code;
}

}  // namespace servetune
