// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/unequal_work.hpp"

namespace servetune {

std::vector<std::string_view> unchecked_answers(const SearchSpace& space,
                                                const Standing& standing) {
    const bool compared =
        std::any_of(standing.trials.begin(), standing.trials.end(), [](const Trial* trial) {
            return trial->measurement() != nullptr &&
                   trial->measurement()->metrics.contains("quality_drop");
        });
    std::vector<std::string_view> result;
    for (const auto& [name, value] : standing.configuration.entries()) {
        const Parameter& parameter = space.at(name);
        if (!compared && value != parameter.default_value && changes_answers(parameter))
            result.push_back(parameter.name);
    }
    return result;
}

const Standing* gains_by_other_work(const Problem& problem, const Standings& standings,
                                    const Standing& base) {
    const Standing* result = nullptr;
    double most = 0;
    for (const Standing& standing : standings.all()) {
        const bool only_by_work =
            standing.refusal == Refusal::none || standing.refusal == Refusal::other_work;
        if (standing.other_work.empty() || standing.measured() == 0 || !only_by_work) continue;
        for (std::size_t k = 0; k < problem.objective.goals.size(); ++k) {
            const Goal& goal = problem.objective.goals[k];
            const double equal =
                goal.gain(standing.goals[k].estimate.judged(), base.goals[k].estimate.judged());
            const double gain = (1 + equal) / standing.goals[k].equal_work - 1;
            if (gain < problem.decision.min_gain || gain < 3 * standings.noises()[k] ||
                gain <= most)
                continue;
            most = gain;
            result = &standing;
        }
    }
    return result;
}

const Standing* doubted_for_work(const Problem& problem, const Standings& standings,
                                 const Standing& chosen, const Standing* base) {
    if (&chosen == base) return gains_by_other_work(problem, standings, *base);
    const bool other_answers = std::any_of(chosen.other_work.begin(), chosen.other_work.end(),
                                           [](const OtherWork& work) { return work.output; });
    return other_answers && !unchecked_answers(problem.space, chosen).empty() ? &chosen : nullptr;
}

}  // namespace servetune
