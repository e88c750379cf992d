// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/recommendation.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {

/// Why a run came back.
enum class StopReason {
    strategy_finished,
    trials_spent,
    wall_clock_spent,
    deadline,
    nothing_starts,
    stopped_by_user,
    error
};

inline constexpr std::array<std::pair<StopReason, std::string_view>, 7> stop_reasons{
    {{StopReason::strategy_finished, "strategy_finished"},
     {StopReason::trials_spent, "trials_spent"},
     {StopReason::wall_clock_spent, "wall_clock_spent"},
     {StopReason::deadline, "deadline"},
     {StopReason::nothing_starts, "nothing_starts"},
     {StopReason::stopped_by_user, "stopped_by_user"},
     {StopReason::error, "error"}}};

/// What a run did.
struct Summary {
    StopReason reason = StopReason::error;
    std::string message{};  ///< the strategy's last word, how the first trials failed, or the error
    Recommendation recommendation{};
};

}  // namespace servetune
