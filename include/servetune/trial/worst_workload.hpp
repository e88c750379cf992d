// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial/standing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace servetune {

namespace worst_workload_detail {

/// ln of a metric under each workload.
inline std::map<std::string, double> logs_by_workload(const Metrics& metrics, const std::string& metric) {
    std::map<std::string, double> result;
    const std::string prefix = metric + "@";
    for (auto at = metrics.lower_bound(prefix); at != metrics.end() && at->first.starts_with(prefix); ++at)
        if (at->second.value > 0) result[at->first.substr(prefix.size())] = std::log(at->second.value);
    return result;
}

inline const Measurement* measured_by(const Standing& standing, double trial_id) {
    for (const Trial* trial : standing.trials)
        if (static_cast<double>(trial->id) == trial_id) return trial->measurement();
    return nullptr;
}

}  // namespace worst_workload_detail

/// Objective::Over::worst: each figure becomes the default's combined one times the gain over the default in the
/// workload that gains least (loses most). The default's own figure under each workload is the geometric mean of its
/// measurements. Figures without workloads of their own stay. `standings`: judged, the default first.
inline void take_worst_workload(std::vector<Standing>& standings, const Objective& objective) {
    using namespace worst_workload_detail;
    if (standings.empty()) return;
    for (std::size_t k = 0; k < objective.goals.size(); ++k) {
        const Goal& goal = objective.goals[k];
        const double sign = goal.direction == Direction::maximize ? 1 : -1;
        const Standing& usual = standings.front();
        std::map<std::string, double> base;
        double whole = 0;
        const std::vector<double> base_values = usual.goals[k].values;
        const auto count = static_cast<double>(base_values.size());
        for (std::size_t i = 0; i < base_values.size(); ++i) {
            whole += std::log(base_values[i]) / count;
            if (const Measurement* measurement = measured_by(usual, usual.goals[k].places[i]))
                for (const auto& [workload, log] : logs_by_workload(measurement->metrics, goal.metric)) base[workload] += log / count;
        }
        if (base.size() < 2) continue;
        for (Standing& standing : standings)
            for (std::size_t i = 0; i < standing.goals[k].values.size(); ++i) {
                const Measurement* measurement = measured_by(standing, standing.goals[k].places[i]);
                if (measurement == nullptr) continue;
                std::vector<double> gains;
                for (const auto& [workload, log] : logs_by_workload(measurement->metrics, goal.metric))
                    if (const auto found = base.find(workload); found != base.end()) gains.push_back(sign * (log - found->second));
                if (gains.size() == base.size())
                    standing.goals[k].values[i] = std::exp(whole + sign * *std::min_element(gains.begin(), gains.end()));
            }
    }
}

}  // namespace servetune
