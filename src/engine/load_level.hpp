// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/parameter.hpp"
#include "servetune/workload.hpp"

#include <string>
#include <string_view>

namespace servetune {

/// Parameters of the load and not of the engine: how much of it the server gets. They make no flag,
/// so that a server need not be started again for another level; what is asked with them is how
/// much load a server bears within the limits of the objective.
inline constexpr std::string_view load_concurrency =
    "load.concurrency";  ///< requests in flight (closed loop), at least 1
inline constexpr std::string_view load_request_rate =
    "load.request_rate";  ///< requests a second (open loop), above 0

[[nodiscard]] bool is_load_level(std::string_view parameter);

/// Throws SpaceError where a parameter is none of the two above, or could be no level (0 requests
/// in flight, a rate of 0).
void check_load_level(const Parameter& parameter);

/// The workload with the load that the configuration says in place of its own; its own burstiness
/// where it has a rate.
[[nodiscard]] Workload at_load_level(Workload workload, const Configuration& configuration);

/// What is left for the engine.
[[nodiscard]] Configuration without_load_level(const Configuration& configuration);

/// `load.concurrency=64`; empty where the configuration has no load level.
[[nodiscard]] std::string load_level_text(const Configuration& configuration);

}  // namespace servetune
