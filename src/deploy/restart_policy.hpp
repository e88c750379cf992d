// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace servetune {

/// When an engine that fell is started again, and when it is given up: after more falls than it
/// has restarts. An hour of service makes up for one fall, so that an engine that dies now and then
/// is served for as long as it is of use, and one that dies at once is given up within minutes. The
/// time of a start, which may be minutes too, makes up for nothing.
class RestartPolicy {
public:
    explicit RestartPolicy(std::size_t restarts) : restarts_(static_cast<double>(restarts)) {}

    /// It fell after so many seconds of service; 0: it did not come to serve. Answers the seconds
    /// to wait before its next start: 1, then twice as many for each fall, 60 at most. Nothing: it
    /// is given up.
    std::optional<double> fell(double served_seconds) {
        constexpr double seconds_for_a_fall = 3600;
        constexpr double first_pause_seconds = 1;
        constexpr double longest_pause_seconds = 60;
        falls_ = std::max(0.0, falls_ - served_seconds / seconds_for_a_fall) + 1;
        if (falls_ > restarts_) return std::nullopt;
        return std::min(first_pause_seconds * std::exp2(falls_ - 1), longest_pause_seconds);
    }

private:
    double restarts_;
    double falls_ = 0;
};

}  // namespace servetune
