// SPDX-License-Identifier: Apache-2.0
#include "comparable_figures.hpp"

#include "base/probability.hpp"

namespace servetune {
namespace {

/// The default where it was measured, else the first configuration that was; null: none.
const Standing* measured_base(const std::vector<Standing>& standings,
                              std::optional<std::size_t> usual) {
    if (usual && standings[*usual].measured() > 0) return &standings[*usual];
    const auto first = find_if(standings, [](const Standing& one) { return one.measured() > 0; });
    return first == standings.end() ? nullptr : &*first;
}

/// The measurements that a standing's figures come from.
std::vector<const Measurement*> counted(const Standing& standing) {
    std::vector<const Measurement*> result;
    const std::vector<double>& places = standing.leading().places;
    for (const Trial* trial : standing.trials)
        if (contains(places, double(trial->id))) result.push_back(trial->measurement());
    return result;
}

std::map<std::string, WorkLengths> lengths_of(const Standing& standing) {
    std::map<std::string, WorkLengths> result;
    for (const Measurement* measurement : counted(standing))
        WorkLengths::add(result, measurement->metrics);
    return result;
}

}  // namespace

std::string LengthMismatch::text() const {
    return short_number_text(mine) + (output ? " output" : " input") + " tokens a request" +
           (workload.empty() ? "" : " on " + workload) + ", " + short_number_text(usual) +
           " with the default";
}

void WorkLengths::add(std::map<std::string, WorkLengths>& lengths, const Metrics& metrics) {
    const auto answers = figures_of(metrics, "output_tokens");
    const bool several = any_of(answers, [](const auto& one) { return !one.first.empty(); });
    for (const auto& [workload, output] : answers) {
        if (several == workload.empty()) continue;
        const auto* successes =
            entry_in(metrics, MetricKey{"successful_requests", workload}.text());
        if (successes == nullptr || !(successes->value > 0) || !(output->value > 0)) continue;
        WorkLengths& mine = lengths[std::string(workload)];
        mine.output.add(*output, successes->value);
        const auto* input = entry_in(metrics, MetricKey{"input_tokens", workload}.text());
        if (input != nullptr && input->value > 0) mine.input.add(*input, successes->value);
    }
}

std::optional<double> share_of_equal_work(std::string_view metric, const WorkLengths& mine,
                                          const WorkLengths& usual) {
    const std::string_view name = MetricKey::of(metric).name;
    const auto ratio = [](const RequestLength& a, const RequestLength& b) {
        return a.tokens > 0 && b.tokens > 0 ? a.mean() / b.mean() : 1.0;
    };
    const double input = ratio(mine.input, usual.input);
    const double output = ratio(mine.output, usual.output);
    const double least = std::min({1.0, input, output});
    const bool both = mine.input.tokens > 0 && usual.input.tokens > 0;
    if (name == "requests_per_second" || name == "latency_mean_seconds" ||
        name == "duration_seconds")
        return least;
    if (name.starts_with("output_tokens_per_second") && !name.ends_with("_per_user"))
        return least / output;
    if (name.starts_with("input_tokens_per_second")) return least / input;
    if (name.starts_with("total_tokens_per_second") && both)
        return least * (usual.input.mean() + usual.output.mean()) /
               (mine.input.mean() + mine.output.mean());
    const bool of_load = name.find("tokens_per_second") != std::string_view::npos ||
                         name.ends_with("requests_per_second") || name.starts_with("sustained_") ||
                         name.starts_with("latency_") || name.starts_with("time_to_first_token") ||
                         name.starts_with("time_per_output_token") ||
                         name.starts_with("inter_token_latency") ||
                         name.starts_with("joules_per_") || name.starts_with("usd_per_");
    return of_load ? std::nullopt : std::optional(1.0);
}

FigureScale take_scale(std::vector<Standing>& standings, const Goal& goal, std::size_t k,
                       std::optional<std::size_t> usual) {
    std::vector<double> all;
    for (const Standing& standing : standings)
        all.insert(all.end(), standing.goals[k].values.begin(), standing.goals[k].values.end());
    if (all_of(all, [](double value) { return value > 0; })) return {};
    const std::vector<double>& of_usual = measured_base(standings, usual)->goals[k].values;
    double mean = 0;
    for (const double value : of_usual) mean += value / double(of_usual.size());
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
    const Standing* base = measured_base(standings, usual);
    if (base == nullptr) return;
    const std::map<std::string, WorkLengths> base_lengths = lengths_of(*base);
    if (base_lengths.empty()) return;
    const double surely = normal_quantile(std::pow(0.975, 1 / double(standings.size())));
    for (Standing& standing : standings) {
        if (&standing == base || standing.measured() == 0) continue;
        std::vector<double> shares(objective.goals.size(), 1);
        bool comparable = true;
        for (const auto& entry : lengths_of(standing)) {
            const std::string& workload = entry.first;
            const WorkLengths& mine = entry.second;
            const auto* found = entry_in(base_lengths, workload);
            if (found == nullptr) continue;
            const WorkLengths& of_base = *found;
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
            const bool of_latency = any_of(objective.limits, [](const Limit& limit) {
                return limit.metric.starts_with("latency_");
            });
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
