// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/study/closest.hpp"

namespace servetune {

Limit BrokenLimit::loosened() const {
    Limit result = limit;
    result.bound = value;
    if (value == 0) return result;
    const double step = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 2);
    const double steps = limit.at_least ? std::floor(value / step) : std::ceil(value / step);
    result.bound = step < 1 ? steps / std::round(1 / step) : steps * step;
    if (!result.keeps(value)) result.bound = value;
    return result;
}

std::optional<Closest> closest_to_passing(const Problem& problem, const Standings& standings) {
    std::optional<Closest> result;
    for (const Standing& standing : standings.all()) {
        if (standing.measured() == 0 || standing.passes()) continue;
        Closest one{standing.configuration, {}};
        bool judged = true;
        for (const Trial* trial : standing.trials) {
            const Measurement* measurement = trial->measurement();
            if (measurement == nullptr || !problem.decision.believes(*measurement)) continue;
            for (const Limit& limit : problem.objective.limits) {
                judged = judged && limit.holds(measurement->metrics).has_value();
                for (const auto& [workload, value] : limit.broken(measurement->metrics)) {
                    const double by = std::abs(value - limit.bound) /
                                      std::max(std::abs(value), std::abs(limit.bound));
                    const auto same =
                        std::find_if(one.broken.begin(), one.broken.end(),
                                     [&, at = workload](const BrokenLimit& other) {
                                         return other.limit == limit && other.workload == at;
                                     });
                    if (same == one.broken.end())
                        one.broken.push_back({limit, workload, value, by});
                    else if (by > same->by) *same = {limit, workload, value, by};
                }
            }
        }
        // It is refused for something else: a failure, or a limit that could not be judged.
        if (one.broken.empty() || standing.refusal != Refusal::limit || !judged) continue;
        std::stable_sort(one.broken.begin(), one.broken.end(),
                         [](const BrokenLimit& a, const BrokenLimit& b) { return a.by > b.by; });
        if (!result || one.broken.front().by < result->broken.front().by) result = std::move(one);
    }
    return result;
}

}  // namespace servetune
