// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/budget.hpp"
#include "servetune/detail/study/summary.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

namespace autotune {

/// Ends what a run does when the budget's time is over, as a stop by the user does: a study starts
/// no trial that would last too long, were it as long as the longest so far, and the next may be
/// longer. Its clock starts when it is made.
class TimeLimit {
public:
    TimeLimit(const servetune::Budget& budget, const std::stop_token& user);

    /// Stops by the user, and when the time is over.
    [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
    /// What ended the run; nothing: there was time left.
    [[nodiscard]] std::optional<servetune::StopReason> reached() const { return reached_; }

private:
    std::stop_source source_{};
    std::atomic<std::optional<servetune::StopReason>> reached_{std::nullopt};
    std::stop_callback<std::function<void()>> pass_on_;
    std::jthread waiter_{};  // last: ends before what it uses
};

}  // namespace autotune
