// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <string>

namespace servetune {

/// The standard input of a program that is told something first and then hears from us at regular
/// times (ProcessOptions::beats). One thread writes; any thread may hang up. The writer's thread
/// must have SIGPIPE blocked: the program may be gone.
class FedInput {
public:
    FedInput(std::string first, std::chrono::milliseconds beats)
        : pending_(std::move(first)), beats_(beats) {
        (void)fcntl(pipe_.in.id(), F_SETFL, O_NONBLOCK);
    }

    [[nodiscard]] int for_the_program() const { return pipe_.out.id(); }
    void program_has_it() { pipe_.out.reset(); }

    /// To be polled for POLLOUT; -1: there is nothing to write now.
    [[nodiscard]] int waits_to_write() const {
        const std::scoped_lock lock(mutex_);
        return pending_.empty() ? -1 : pipe_.in.id();
    }
    /// Milliseconds until `write` is due though nothing waits; -1: never more.
    [[nodiscard]] int due_in() const {
        const std::scoped_lock lock(mutex_);
        if (pipe_.in.id() < 0) return -1;
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - Clock::now()).count();
        return static_cast<int>(std::clamp<std::int64_t>(left, 0, beats_.count()));
    }
    /// What waits, and a beat where it is time: as far as the pipe takes it.
    void write() {
        const std::scoped_lock lock(mutex_);
        if (pipe_.in.id() < 0) return;
        if (Clock::now() >= next_beat_) {
            if (pending_.empty()) pending_ = "\n";  // else it hears from us anyway
            next_beat_ = Clock::now() + beats_;
        }
        while (!pending_.empty()) {
            const ssize_t wrote = ::write(pipe_.in.id(), pending_.data(), pending_.size());
            if (wrote < 0 && errno == EINTR) continue;
            if (wrote < 0 && errno == EAGAIN) return;
            if (wrote < 0) {  // it reads no more
                pending_.clear();
                pipe_.in.reset();
                return;
            }
            pending_.erase(0, static_cast<std::size_t>(wrote));
        }
    }
    void hang_up() {
        const std::scoped_lock lock(mutex_);
        pending_.clear();
        pipe_.in.reset();
    }

private:
    using Clock = std::chrono::steady_clock;
    mutable std::mutex mutex_{};
    Pipe pipe_{};
    std::string pending_;
    std::chrono::milliseconds beats_;
    Clock::time_point next_beat_ = Clock::now() + beats_;
};

}  // namespace servetune
