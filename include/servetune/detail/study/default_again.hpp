// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy.hpp"

#include <cstddef>
#include <span>

namespace servetune {

/// Whether the default configuration is to be measured again now, so that a machine that drifts is
/// seen (`Drift`): once so many trials of others have followed its last one (0: never). Not where
/// it fails, or where nothing changes when it is measured again. The confirmation measures it at
/// least three times more.
bool default_again_is_due(const Problem& problem, std::span<const Trial> history,
                          std::size_t every);

}  // namespace servetune
