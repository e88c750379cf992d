// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/default_again.hpp"

namespace servetune {

bool default_again_is_due(const Problem& problem, std::span<const Trial> history,
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
