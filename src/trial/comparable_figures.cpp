// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/trial/comparable_figures.hpp"

#include "servetune/detail/base/normal.hpp"
#include "servetune/detail/trial/metric_key.hpp"

namespace servetune {

FigureScale take_scale(std::vector<Standing>& standings, const Goal& goal, std::size_t k,
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

void compare_work(std::vector<Standing>& standings, const Objective& objective,
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
        if (!comparable && standing.refusal == Refusal::none)
            standing.refuse(Refusal::other_work,
                            "other work than the default: " + standing.other_work.front().text());
    }
}

}  // namespace servetune
