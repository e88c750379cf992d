// SPDX-License-Identifier: Apache-2.0
#include "stop_signals.hpp"

#include "commands.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace autotune {
namespace {

sigset_t stopping() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
    return set;
}

}  // namespace

StopSignals::StopSignals(const char* promise) {
    const sigset_t set = stopping();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is an error of that write, with a message, not the end of the program
    waiter_ = std::jthread([this, set, promise](const std::stop_token& over) {
        constexpr timespec look_up_interval{0, 50'000'000};  // how soon the end of the program is noticed
        while (!over.stop_requested()) {
            if (sigtimedwait(&set, nullptr, &look_up_interval) < 0) continue;
            if (!source_.request_stop()) std::_Exit(stopped);
            std::fprintf(stderr, "\nstopping; %s. Once more: stop at once.\n", promise);
        }
    });
}

StopSignals::~StopSignals() {
    waiter_.request_stop();
    waiter_.join();
    const sigset_t set = stopping();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace autotune
