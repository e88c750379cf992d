// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/reliance.hpp"

namespace servetune {

bool only_unsound(const Standing& standing, const Problem& problem) {
    std::size_t believed = 0;
    const auto says_nothing_against_it = [&](const Trial* trial) {
        if (const Failure* failure = trial->failure()) return !teaches(failure->kind);
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) return false;
        const bool is_believed = problem.decision.believes(*measurement);
        believed += is_believed ? 1 : 0;
        return std::none_of(problem.objective.limits.begin(), problem.objective.limits.end(),
                            [&](const Limit& limit) {
                                const auto holds = limit.holds(measurement->metrics);
                                return holds == false || (is_believed && !holds);
                            });
    };
    return standing.told() && !standing.pending() && !standing.passes() &&
           std::all_of(standing.trials.begin(), standing.trials.end(), says_nothing_against_it) &&
           believed == standing.measured();
}

bool mostly_disturbed(const Standing& standing, const Decision& decision) {
    std::size_t believed = 0;
    std::size_t disturbed = 0;
    for (const Trial* trial : standing.trials) {
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr || !decision.believes(*measurement)) continue;
        ++believed;
        disturbed += measurement->validity.disturbed() ? 1 : 0;
    }
    return decision.enforce_audit && disturbed > 0 && 2 * disturbed >= believed;
}

}  // namespace servetune
