// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/detail/perf/cost_model.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// How the start of an engine ends: that it serves, after how long, or why it does not, as its log
/// would say it.
struct StartResult {
    enum class End { serves, exits };
    End end = End::serves;
    double seconds = 0;  ///< until it serves or exits
    int exit_code = 0;
    std::string
        cause{};  ///< for people: `weights need 27.5 GiB more than ...`; empty where it serves
    std::vector<std::string> log{};  ///< lines, as the engine would print them
};

/// Starts an engine on paper: memory (out of memory at load, none left for the cache, graphs that
/// do not fit), what the chip or the attention back end cannot do, contexts longer than the cache.
StartResult start(const CostModel& cost);

/// A line of EngineTraits::log with its `{names}` filled in; unknown names stay. Throws nothing.
std::string filled(std::string line,
                   const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace servetune
