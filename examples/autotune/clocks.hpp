// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

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

/// `2026-11-27 21:40`, as the clock here shows a time in seconds since 1970 UTC.
inline std::string local_time_text(double seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    std::tm local{};
    localtime_r(&time, &local);
    std::string text(16, '\0');
    text.resize(std::strftime(text.data(), text.size() + 1, "%Y-%m-%d %H:%M", &local));
    return text;
}

/// `2026-11-27T21:40:05+0100`: now, as the clock here shows it.
inline std::string local_stamp() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::string text(24, '\0');
    text.resize(std::strftime(text.data(), text.size() + 1, "%Y-%m-%dT%H:%M:%S%z", &local));
    return text;
}

}  // namespace autotune
