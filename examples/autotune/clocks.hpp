// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace autotune {

/// Seconds since 1970 UTC of the next time that the local clock says so many minutes after
/// midnight.
inline double next_time_of_day(int minutes) {
    const std::time_t now = std::time(nullptr);
    std::tm day{};
    localtime_r(&now, &day);
    day.tm_hour = minutes / 60;
    day.tm_min = minutes % 60;
    day.tm_sec = 0;
    day.tm_isdst = -1;
    std::time_t then = std::mktime(&day);
    if (then <= now) {
        ++day.tm_mday;
        day.tm_isdst = -1;
        then = std::mktime(&day);
    }
    return static_cast<double>(then);
}

}  // namespace autotune
