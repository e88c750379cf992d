// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/standings.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cstddef>

namespace servetune {

// Whether what was measured of a configuration can be relied on.

/// Whether all that keeps a configuration from passing is that what was measured cannot be
/// believed, or failures that were not its own.
bool only_unsound(const Standing& standing, const Problem& problem);

/// Whether at least half of what is believed of a configuration was measured while something else
/// used the machine.
bool mostly_disturbed(const Standing& standing, const Decision& decision);

/// Whether all that was measured of a configuration was with weights of a cache.
inline bool only_with_cached_weights(const Standing& standing) {
    return standing.measured() > 0 &&
           std::none_of(standing.trials.begin(), standing.trials.end(), [](const Trial* trial) {
               return trial->measurement() != nullptr &&
                      !trial->measurement()->with_cached_weights();
           });
}

}  // namespace servetune
