// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>

namespace servetune {

/// When a run ends by itself. Trials that a resumed study has already told count.
struct Budget {
    std::size_t trials = 30;  ///< told trials of the search; the report's own measurements do not count
    double wall_clock_seconds = std::numeric_limits<double>::infinity();  ///< of this run; no trial is started after it
    /// Seconds since 1970 UTC: no trial is started that would not be over by then, were it as long as the longest so far.
    double until = std::numeric_limits<double>::infinity();
};

}  // namespace servetune
