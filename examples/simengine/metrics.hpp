// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dialect.hpp"

#include "servetune/detail/perf/engine_core.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace simengine {

/// What the engine counts at this moment.
struct EngineFigures {
    servetune::EngineCounters counters{};
    std::size_t running = 0;
    std::size_t waiting = 0;
    double cache_use = 0;
    std::int64_t finished = 0;
    double started_at = 0;  ///< seconds since 1970
    std::string model{};
};

/// In Prometheus' text format. `names`: an engine file's `counters`, our name -> the engine's.
std::string prometheus_text(const Dialect& dialect, const std::map<std::string, std::string>& names,
                            const EngineFigures& figures);

}  // namespace simengine
