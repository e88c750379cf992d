// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace servetune {

/// Where the seconds of trials went. `trials` holds what is in no other part too: stops, checks and
/// trials that failed.
struct TimeSpent {
    double trials = 0;
    double starts = 0;
    double warm_up = 0;
    double loads = 0;
    double saved = 0;  ///< by load tests that were ended and by servers that were there already
    std::size_t started = 0;
    std::size_t on_warm = 0;
    std::size_t ended_early = 0;

    /// `starts 3.2 h, warm-up 20.0 min, load tests 1.0 h, the rest 5.0 min; saved about 12.0 min: 9
    /// trials ended early`; empty: no load test told how long it took.
    [[nodiscard]] std::string text() const;
};

[[nodiscard]] TimeSpent time_spent_in(std::span<const Trial> trials);

/// `45 s`, `12.5 min`, `3.2 h`.
[[nodiscard]] std::string spent_text(double seconds);

}  // namespace servetune
