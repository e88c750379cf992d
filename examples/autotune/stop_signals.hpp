// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <thread>

namespace autotune {

/// Turns SIGINT, SIGTERM and SIGHUP into a stop request; a second one ends the program at once with exit code 130. Must be made before
/// any other thread, so that all inherit the blocked signals; a thread of its own waits for them (no code runs in a handler).
class StopSignals {
public:
    /// `promise` is printed at the first signal: what happens to the work that is under way.
    explicit StopSignals(const char* promise);
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

private:
    std::stop_source source_;
    std::jthread waiter_;
};

}  // namespace autotune
