// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
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

}  // namespace servetune
