// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace servetune {

inline double seconds_of_clock(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// CLOCK_MONOTONIC in seconds.
inline double monotonic_seconds() { return seconds_of_clock(CLOCK_MONOTONIC); }

/// How far CLOCK_BOOTTIME is ahead of it: that goes on while the machine sleeps, and a server
/// elsewhere goes on with its answers.
inline double slept_seconds() { return seconds_of_clock(CLOCK_BOOTTIME) - monotonic_seconds(); }

/// A turn of a loop that comes later than this was stopped: Ctrl-Z, a machine that slept, a
/// container on hold. A loop that is only busy is milliseconds late.
inline constexpr double client_stops_at = 0.5;

}  // namespace servetune
