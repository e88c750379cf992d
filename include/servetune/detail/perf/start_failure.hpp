// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/cost_model.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// How the start of an engine ends: that it serves, after how long, or why it does not, as its log
/// would say it.
struct StartResult {
    bool serves = true;
    double seconds = 0;              ///< until it serves or exits
    std::string cause{};             ///< for people: `weights need 27.5 GiB more than ...`
    std::vector<std::string> log{};  ///< lines, as the engine would print them
};

/// Starts an engine on paper: memory (out of memory at load, none left for the cache, graphs that
/// do not fit), what the chip or the attention back end cannot do, contexts longer than the cache.
StartResult start(const CostModel& cost);

/// The lines that the log has for this event, with their `{names}` filled in.
std::vector<std::string> log_lines(const EngineTraits& traits, std::string_view event,
                                   const std::vector<std::pair<std::string, std::string>>& values);
/// The same with the figures of the cost model.
std::vector<std::string> log_lines(const CostModel& cost, std::string_view event);

}  // namespace servetune
