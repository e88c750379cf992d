// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/trial/worst_workload.hpp"

#include "servetune/detail/trial/metric_key.hpp"

namespace servetune {
namespace worst_workload_detail {

std::map<std::string, double> mean_logs_by_workload(const Standing& standing, std::size_t k,
                                                    const std::string& metric) {
    std::map<std::string, double> result;
    for (const double place : standing.goals[k].places)
        if (const Measurement* measurement = measured_by(standing, place))
            for (const auto& [workload, log] : logs_by_workload(measurement->metrics, metric))
                result[workload] += log / static_cast<double>(standing.goals[k].places.size());
    return result;
}

}  // namespace worst_workload_detail
}  // namespace servetune

namespace servetune {

void take_worst_workload(std::vector<Standing>& standings, const Objective& objective,
                         std::optional<std::size_t> usual) {
    using namespace worst_workload_detail;
    for (std::size_t k = 0; k < objective.goals.size(); ++k) {
        const Goal& goal = objective.goals[k];
        const double sign = goal.direction == Direction::maximize ? 1 : -1;
        const auto measured = [&](const Standing& standing) {
            return mean_logs_by_workload(standing, k, goal.metric).size() >= 2;
        };
        const auto first = std::find_if(standings.begin(), standings.end(), measured);
        if (first == standings.end()) continue;
        const Standing& base = usual && measured(standings[*usual]) ? standings[*usual] : *first;
        const std::map<std::string, double> base_logs = mean_logs_by_workload(base, k, goal.metric);
        double whole = 0;
        for (const double value : base.goals[k].values)
            whole += std::log(value) / static_cast<double>(base.goals[k].values.size());
        for (Standing& standing : standings) {
            if (&standing == &base) continue;
            // Decided once for all measurements: the smallest of several noisy figures is too
            // small.
            const std::map<std::string, double> mine =
                mean_logs_by_workload(standing, k, goal.metric);
            auto worst = base_logs.end();
            const auto gain = [sign, &mine](const auto& at) {
                return sign * (mine.at(at->first) - at->second);
            };
            for (auto at = base_logs.begin(); at != base_logs.end(); ++at)
                if (mine.contains(at->first) &&
                    (worst == base_logs.end() || gain(at) < gain(worst)))
                    worst = at;
            if (worst == base_logs.end()) continue;
            for (std::size_t i = 0; i < standing.goals[k].values.size(); ++i) {
                const Measurement* measurement = measured_by(standing, standing.goals[k].places[i]);
                if (measurement == nullptr) continue;
                const auto logs = logs_by_workload(measurement->metrics, goal.metric);
                if (const auto found = logs.find(worst->first); found != logs.end())
                    standing.goals[k].values[i] = std::exp(whole + found->second - worst->second);
            }
        }
    }
}

}  // namespace servetune
