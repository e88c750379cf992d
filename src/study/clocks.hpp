// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace servetune {

// The clocks of this machine, which a study reads unless it is given others. The only file of the
// core that reads a clock.

/// Seconds since 1970-01-01 UTC. Somebody may set this clock, also during a run.
inline double unix_seconds() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// Monotonic seconds, arbitrary epoch.
inline double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace servetune
