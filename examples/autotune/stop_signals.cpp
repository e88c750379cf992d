// SPDX-License-Identifier: Apache-2.0
#include "stop_signals.hpp"

#include "commands.hpp"
#include "output.hpp"

#include "base/waiting.hpp"
#include "servetune/detail/host/process.hpp"
#include "study/clocks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

namespace autotune {

namespace {

/// How this program was started may say that a signal is not for it: nohup ignores SIGHUP, a shell
/// without job control SIGINT for what it starts in the background. A signal that is ignored and
/// blocked would be delivered all the same.
sigset_t stopping() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction inherited {};
        if (sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
            sigaddset(&set, signal);
    }
    return set;
}

extern "C" void end_engines_and_die(int signal) {
    kill_started_groups();
    (void)std::raise(signal);  // by its usual way: SA_RESETHAND
}

/// A crash takes the engines with it. What somebody else handles already, such as a sanitizer,
/// stays with them.
void take_engines_along() {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT}) {
        struct sigaction handler {};
        if (sigaction(signal, nullptr, &handler) != 0 || handler.sa_handler != SIG_DFL) continue;
        handler.sa_handler = end_engines_and_die;
        handler.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
        sigaction(signal, &handler, nullptr);
    }
}

}  // namespace

StopSignals::StopSignals(const char* promise, bool preparing)
    : signals_(stopping()), preparing_(preparing) {
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    // Errors of a write, with a message, and not the end of the program: a file at its size limit,
    // a reader that has gone.
    for (const int signal : {SIGXFSZ, SIGPIPE}) std::signal(signal, SIG_IGN);
    take_engines_along();
    waiter_ = std::jthread([this, promise](const std::stop_token& over) {
        constexpr timespec look_up_interval{
            0, 50'000'000};  // how soon the end of the program is noticed
        while (!over.stop_requested()) {
            if (sigtimedwait(&signals_, nullptr, &look_up_interval) < 0) continue;
            if (preparing_) complain("stopped before the first trial; nothing is lost");
            if (preparing_ || !source_.request_stop()) {
                kill_started_groups();
                screen().leave();
                std::_Exit(stopped);
            }
            complain("stopping; {}. Once more: stop at once.", promise);
        }
    });
}

StopSignals::~StopSignals() {
    waiter_.request_stop();
    waiter_.join();
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

TimeLimit::TimeLimit(const Budget& budget, const std::stop_token& user)
    : pass_on_(user, [this] { source_.request_stop(); }) {
    if (!std::isfinite(budget.wall_clock_seconds) && !std::isfinite(budget.until)) return;
    waiter_ = std::jthread([this, budget, began = steady_seconds()](const std::stop_token& over) {
        constexpr double longest_wait = 1;  // somebody may set the clock of `until`
        for (;;) {
            const double of_run = budget.wall_clock_seconds - (steady_seconds() - began);
            const double of_day = budget.until - unix_seconds();
            const double left = std::min(of_run, of_day);
            if (left <= 0) {
                reached_ = of_run <= 0 ? StopReason::wall_clock_spent : StopReason::deadline;
                source_.request_stop();
                return;
            }
            if (wait_or_stop(std::chrono::duration<double>(std::min(left, longest_wait)), over))
                return;
        }
    });
}

}  // namespace autotune
