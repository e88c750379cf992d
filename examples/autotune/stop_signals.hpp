// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/budget.hpp"
#include "servetune/study.hpp"

#include <atomic>
#include <csignal>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

namespace autotune {

/// Turns SIGINT, SIGTERM and SIGHUP into a stop request; a second one kills what the program has
/// started and ends it at once with exit code 130. A signal that was ignored when the program began
/// (nohup, background jobs of scripts) stays ignored. Must be made before any other thread, so that
/// all inherit the blocked signals; a thread of its own waits for them. A crash kills what was
/// started too, in a signal handler. SIGPIPE is ignored from here on: a write to a reader that has
/// gone is an error of that write.
class StopSignals {
public:
    /// `promise` is printed at the first signal: what happens to the work that is under way. With
    /// `preparing` the first signal ends the program like a second one, until `prepared` is called:
    /// nothing is under way yet, and what reads files may take long.
    explicit StopSignals(const char* promise, bool preparing = false);
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    void prepared() { preparing_ = false; }
    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

private:
    sigset_t signals_;
    std::stop_source source_;
    std::atomic<bool> preparing_;
    std::jthread waiter_;
};

/// Ends what a run does when the budget's time is over, as a stop by the user does: a study starts
/// no trial that would last too long, were it as long as the longest so far, and the next may be
/// longer. Its clock starts when it is made.
class TimeLimit {
public:
    TimeLimit(const servetune::Budget& budget, const std::stop_token& user);

    /// Stops by the user, and when the time is over.
    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
    /// What ended the run; nothing: there was time left.
    [[nodiscard]] std::optional<servetune::StopReason> reached() const { return reached_; }

private:
    std::stop_source source_{};
    std::atomic<std::optional<servetune::StopReason>> reached_{std::nullopt};
    std::stop_callback<std::function<void()>> pass_on_;
    std::jthread waiter_{};  // last: ends before what it uses
};

}  // namespace autotune
