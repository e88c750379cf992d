// SPDX-License-Identifier: Apache-2.0
#include "rejected_priors.hpp"

#include <cmath>

namespace servetune {

std::vector<RejectedPrior> rejected_priors(const Beliefs& beliefs, const Problem& problem,
                                           const Standings& standings) {
    std::vector<RejectedPrior> result;
    const Configuration usual = problem.space.default_configuration();
    const auto found = find_if(
        standings.all(), [&](const Standing& standing) { return standing.configuration == usual; });
    if (found == standings.all().end() || found->measured() == 0 || !standings.scale().ratios())
        return result;
    const double sign = problem.objective.leading().direction == Direction::maximize ? 1 : -1;
    const double base = std::log(found->estimate().judged());
    for (std::size_t source = 0; source < beliefs.size(); ++source) {
        if (beliefs[source].winners().empty()) continue;
        const auto of_default = beliefs[source].belief(usual).log_value;
        if (!of_default) continue;
        RejectedPrior one{source};
        double both = 0;
        double squares = 0;
        for (const Standing& standing : standings.all()) {
            const bool failed = any_of(standing.trials, [](const Trial* trial) {
                return trial->failure() != nullptr && teaches(trial->failure()->kind) &&
                       !trial->fell();  // of speed it says nothing
            });
            if (standing.measured() == 0 && !failed) continue;
            const auto believed = beliefs[source].belief(standing.configuration).log_value;
            if (!believed) continue;
            const double promised = sign * (*believed - *of_default);
            if (promised <= std::log1p(problem.decision.min_gain)) continue;
            const double measured =
                failed ? -promised : sign * (std::log(standing.estimate().judged()) - base);
            ++one.trials;
            one.promised += promised;
            one.measured += measured;
            both += promised * measured;
            squares += promised * promised;
        }
        constexpr std::size_t enough = 2;
        constexpr double least_kept = 0.5;
        if (one.trials < enough) continue;
        const double error = standings.noise() * std::sqrt(2 / squares);
        if (both / squares + 2 * error >= least_kept) continue;
        one.promised /= double(one.trials);
        one.measured /= double(one.trials);
        result.push_back(one);
    }
    return result;
}

}  // namespace servetune
