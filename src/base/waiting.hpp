// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <stop_token>

namespace servetune {

/// Waits for `time` (none where it is not above 0), or until `stop` is requested. True: stop is
/// requested.
inline bool wait_or_stop(std::chrono::duration<double> time, const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    wake.wait_for(lock, stop, time, [] { return false; });
    return stop.stop_requested();
}

/// A point in time that somebody looks at again and again, and that moves while nobody does: a
/// process that was stopped (Ctrl-Z) or a machine that slept says nothing of what was waited for.
class PatientDeadline {
public:
    using Clock = std::chrono::steady_clock;
    /// Between two looks of a process that runs; a busy machine stays far below.
    static constexpr std::chrono::seconds longest_gap{2};

    explicit PatientDeadline(Clock::time_point at) : at_(at) {}

    /// To be asked more often than once in `longest_gap`.
    [[nodiscard]] bool passed(Clock::time_point now = Clock::now()) {
        at_ += gap(now);
        return now >= at_;
    }
    /// For how long nobody looked, where that is too long; else 0. Looks.
    Clock::duration gap(Clock::time_point now = Clock::now()) {
        const Clock::duration since = now - looked_;
        looked_ = now;
        return since > longest_gap ? since : Clock::duration::zero();
    }

private:
    Clock::time_point at_;
    Clock::time_point looked_ = Clock::now();
};

/// Blocks all signals for this thread, and for threads and processes that it makes meanwhile.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace servetune
