// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/audit.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/workload.hpp"

#include <optional>

namespace servetune {

/// Whether a run stayed the same from its start to its end.
struct Steadiness {
    std::optional<Finding> finding{};         ///< `steady`: one part was slower than the rest
    std::optional<NotChecked> not_checked{};  ///< why no part could be compared
};

/// Compares the first part of a run with the rest, split where the two differ most: by the time per
/// output token and, in a closed loop, by the latency. A finding needs a difference that at most
/// one in a hundred steady runs has, and one that moves the run's mean by more than 5 %. Not
/// checked: bursts, ramps and traces, which have no steady state, and runs that are too short.
/// Formula and reasons: docs/explanation/measuring.md.
Steadiness steadiness_of(const LoadRun& run, const Arrival& arrival);

}  // namespace servetune
