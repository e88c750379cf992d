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
inline bool default_again_is_due(const Problem& problem, std::span<const Trial> history,
                                 std::size_t every) {
    if (every == 0 || !problem.replicates_inform) return false;
    std::size_t others = 0;
    for (const Trial& trial : history) {
        if (trial.configuration != problem.space.default_configuration()) ++others;
        else if (const Failure* failure = trial.failure();
                 failure != nullptr && teaches(failure->kind))
            return false;
        else others = 0;
    }
    return others >= every;
}

}  // namespace servetune
