// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/normal.hpp"
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

namespace comparable_figures_detail {

/// The default where it was measured, else the first configuration that was; null: none.
inline const Standing* yardstick(const std::vector<Standing>& standings,
                                 std::optional<std::size_t> usual) {
    if (usual && standings[*usual].measured() > 0) return &standings[*usual];
    const auto first = std::find_if(standings.begin(), standings.end(),
                                    [](const Standing& one) { return one.measured() > 0; });
    return first == standings.end() ? nullptr : &*first;
}

/// The measurements that a standing's figures come from.
inline std::vector<const Measurement*> counted(const Standing& standing) {
    std::vector<const Measurement*> result;
    const std::vector<double>& places = standing.leading().places;
    for (const Trial* trial : standing.trials)
        if (std::find(places.begin(), places.end(), static_cast<double>(trial->id)) != places.end())
            result.push_back(trial->measurement());
    return result;
}

inline std::map<std::string, WorkLengths> lengths_of(const Standing& standing) {
    std::map<std::string, WorkLengths> result;
    for (const Measurement* measurement : counted(standing))
        WorkLengths::add(result, measurement->metrics);
    return result;
}

}  // namespace comparable_figures_detail

/// How goal k is compared. Where all its figures are above 0, by ratios; else by differences, and
/// then the figures become what is judged.
inline FigureScale take_scale(std::vector<Standing>& standings, const Goal& goal, std::size_t k,
                              std::optional<std::size_t> usual) {
    using namespace comparable_figures_detail;
    std::vector<double> all;
    for (const Standing& standing : standings)
        all.insert(all.end(), standing.goals[k].values.begin(), standing.goals[k].values.end());
    if (std::all_of(all.begin(), all.end(), [](double value) { return value > 0; })) return {};
    const std::vector<double>& of_usual = yardstick(standings, usual)->goals[k].values;
    double mean = 0;
    for (const double value : of_usual) mean += value / static_cast<double>(of_usual.size());
    const FigureScale scale = FigureScale::of_differences(mean, all);
    for (Standing& standing : standings) {
        GoalFigures& figures = standing.goals[k];
        figures.within = {};
        for (const Measurement* measurement : counted(standing))
            figures.within += Spread::of(measurement->metrics.find(goal.metric)->second, scale);
        for (double& value : figures.values) value = scale.judged(value);
    }
    return scale;
}

/// Where the requests of a configuration had other lengths than the default's, beyond the noise of
/// these lengths, a rate per request or a latency does not say which of both is faster. What equal
/// work leaves of a figure is taken (`share_of_equal_work`); a configuration with a goal or a
/// latency limit of which that is not known cannot win.
///
/// A difference counts beyond 1.96 deviations; to refuse a configuration for it, so many that all
/// configurations together are refused wrongly in one study of twenty (Sidak, as `gain_between`).
inline void compare_work(std::vector<Standing>& standings, const Objective& objective,
                         std::optional<std::size_t> usual) {
    using namespace comparable_figures_detail;
    const Standing* base = yardstick(standings, usual);
    if (base == nullptr) return;
    const std::map<std::string, WorkLengths> base_lengths = lengths_of(*base);
    if (base_lengths.empty()) return;
    const double surely =
        normal_quantile(std::pow(0.975, 1 / static_cast<double>(standings.size())));
    for (Standing& standing : standings) {
        if (&standing == base || standing.measured() == 0) continue;
        std::vector<double> shares(objective.goals.size(), 1);
        bool comparable = true;
        for (const auto& entry : lengths_of(standing)) {
            const std::string& workload = entry.first;
            const WorkLengths& mine = entry.second;
            const auto found = base_lengths.find(workload);
            if (found == base_lengths.end()) continue;
            const WorkLengths& of_base = found->second;
            const double all =
                (of_base.input.tokens > 0 ? of_base.input.mean() : 0) + of_base.output.mean();
            const auto other = [&](const RequestLength& a, const RequestLength& b,
                                   double deviations) {
                return b.tokens > 0 && other_length(a, b, b.mean() / all, deviations);
            };
            const auto differs = [&](double deviations) {
                return other(mine.output, of_base.output, deviations) ||
                       other(mine.input, of_base.input, deviations);
            };
            if (!differs(normal_95)) continue;
            for (const bool output : {true, false}) {
                const RequestLength& a = output ? mine.output : mine.input;
                const RequestLength& b = output ? of_base.output : of_base.input;
                if (other(a, b, normal_95))
                    standing.other_work.push_back({workload, output, a.mean(), b.mean()});
            }
            for (std::size_t k = 0; k < shares.size(); ++k) {
                const std::string& metric = objective.goals[k].metric;
                const std::string_view only = MetricKey::of(metric).workload;
                if (!only.empty() && only != workload) continue;
                const auto share = share_of_equal_work(metric, mine, of_base);
                shares[k] = std::min(shares[k], share.value_or(1));
                comparable = comparable && (share || !differs(surely));
            }
            const bool of_latency = std::any_of(
                objective.limits.begin(), objective.limits.end(),
                [](const Limit& limit) { return limit.metric.starts_with("latency_"); });
            if (of_latency && other(mine.output, of_base.output, surely) &&
                mine.output.mean() < of_base.output.mean())
                comparable = false;
        }
        for (std::size_t k = 0; k < shares.size(); ++k) {
            GoalFigures& figures = standing.goals[k];
            figures.equal_work = shares[k];
            for (double& value : figures.values)
                value = objective.goals[k].direction == Direction::maximize ? value * shares[k]
                                                                            : value / shares[k];
        }
        if (!comparable && standing.refused.empty())
            standing.refused =
                std::string(other_work_words) + ": " + standing.other_work.front().text();
    }
}

}  // namespace servetune
