// SPDX-License-Identifier: Apache-2.0
#include "time_limit.hpp"

#include "base/waiting.hpp"
#include "servetune/detail/study/clocks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace autotune {

using namespace servetune;

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
