// SPDX-License-Identifier: Apache-2.0
#pragma once

// What no workload may lose against the default. Included by standings.hpp.
#include "servetune/detail/trial/standings.hpp"

namespace servetune {

inline std::map<std::string, double> Standings::by_workload(const Standing& standing, std::size_t k,
                                                            const Decision& decision) const {
    const MetricKey metric = MetricKey::of(goals_[k].metric);
    const double sign = goals_[k].direction == Direction::maximize ? 1 : -1;
    std::map<std::string, std::pair<double, double>> sums;
    for (const Trial* trial : standing.trials) {
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr || !decision.believes(*measurement)) continue;
        for (const auto& [workload, figure] : figures_of(measurement->metrics, metric.name)) {
            const bool asked =
                metric.workload.empty() ? !workload.empty() : workload == metric.workload;
            if (!asked || !(figure->value > 0)) continue;
            auto& [sum, count] = sums[std::string(workload)];
            sum += sign *
                   (std::log(figure->value) - drifts_[k].offset(static_cast<double>(trial->id)));
            ++count;
        }
    }
    std::map<std::string, double> result;
    for (const auto& [workload, sum] : sums) result[workload] = sum.first / sum.second;
    return result;
}

/// A configuration that wins by one workload what another one loses is refused, whatever the mean
/// of both says.
inline void Standings::guard(const Decision& decision) {
    if (!decision.never_worse_than || !default_) return;
    const double allowed = std::log(std::max(1 - *decision.never_worse_than, 1e-12));
    for (std::size_t k = 0; k < goals_.size(); ++k) {
        const auto of_default = by_workload(standings_[*default_], k, decision);
        for (Standing& standing : standings_) {
            if (&standing == &standings_[*default_]) continue;
            for (const auto& [workload, value] : by_workload(standing, k, decision)) {
                const auto base = of_default.find(workload);
                if (base == of_default.end()) continue;
                const double margin = value - base->second - allowed;
                if (standing.guard_margin && margin >= *standing.guard_margin) continue;
                standing.guard_margin = margin;
                if (margin >= 0 ||
                    !(standing.refused.empty() || standing.refused.starts_with(guard_words)))
                    continue;
                standing.refused = guard_words;
                standing.refused.append(" on ").append(workload).append(": ");
                standing.refused.append(short_number_text(-100 * std::expm1(margin + allowed)))
                    .append(" % worse in ");
                standing.refused.append(goals_[k].metric).append(", ");
                standing.refused.append(short_number_text(100 * *decision.never_worse_than))
                    .append(" % are allowed");
            }
        }
    }
}

}  // namespace servetune
