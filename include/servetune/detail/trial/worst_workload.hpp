// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/detail/trial/standing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

namespace worst_workload_detail {

/// ln of a metric under each workload.
inline std::map<std::string, double> logs_by_workload(const Metrics& metrics,
                                                      const std::string& metric) {
    std::map<std::string, double> result;
    for (const auto& [workload, figure] : figures_of(metrics, metric))
        if (!workload.empty() && figure->value > 0)
            result[std::string(workload)] = std::log(figure->value);
    return result;
}

inline const Measurement* measured_by(const Standing& standing, double trial_id) {
    for (const Trial* trial : standing.trials)
        if (static_cast<double>(trial->id) == trial_id) return trial->measurement();
    return nullptr;
}

/// ln of the figure of goal k in each workload, the mean over the measurements that count.
std::map<std::string, double> mean_logs_by_workload(const Standing& standing, std::size_t k,
                                                    const std::string& metric);

}  // namespace worst_workload_detail

/// Objective::Over::worst: each figure becomes the combined one of the default times the gain over
/// it in the workload that gains least (loses most), by the means of the configuration's
/// measurements. The default's own figure under each workload is the geometric mean of its
/// measurements; its combined figures stay. Where the default has no figures, such as one that does
/// not start, gains are those over the first configuration that has. Figures without workloads of
/// their own stay. `standings`: judged, by their first trial; `usual`: the default's place.
void take_worst_workload(std::vector<Standing>& standings, const Objective& objective,
                         std::optional<std::size_t> usual);

}  // namespace servetune
