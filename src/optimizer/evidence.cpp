// SPDX-License-Identifier: Apache-2.0
#include "servetune/optimizer/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {

double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values.size() % 2 == 1 ? values[values.size() / 2] : 0.5 * (values[values.size() / 2 - 1] + values[values.size() / 2]);
}

bool margins_hold(const std::vector<Lesson>& lessons) {
    int balance = 0;
    bool known = false;
    for (const Lesson& lesson : lessons) {
        const double margin = believed_margin(lesson.beliefs);
        known = known || margin != 0;
        if (margin != 0 && (lesson.measured() || !lesson.works)) balance += (margin > 0) == lesson.measured() ? 1 : -1;
    }
    return known && balance >= 0;
}

double margin_of(const Limit& limit, double value) {
    if (limit.metric == "success_ratio") {
        constexpr double requests = 200;
        const auto logit = [](double p) {
            const double smoothed = (std::clamp(p, 0.0, 1.0) * requests + 0.5) / (requests + 1);
            return std::log(smoothed / (1 - smoothed));
        };
        return (limit.at_least ? 1 : -1) * (logit(value) - logit(limit.bound));
    }
    constexpr double least = 1e-12;
    const double ratio = std::log(std::max(value, least) / std::max(limit.bound, least));
    return limit.at_least ? ratio : -ratio;
}

std::optional<double> margin_of(const Limit& limit, const Metrics& metrics) {
    std::optional<double> worst;
    for (auto at = metrics.lower_bound(limit.metric); at != metrics.end() && at->first.starts_with(limit.metric); ++at) {
        if (at->first.size() > limit.metric.size() && at->first[limit.metric.size()] != '@') continue;
        const double margin = margin_of(limit, at->second.value);
        worst = worst ? std::min(*worst, margin) : margin;
    }
    return worst;
}

std::vector<Lesson> told_of(const std::vector<Lesson>& lessons) {
    std::vector<Lesson> result;
    for (const Lesson& lesson : lessons) {
        if (!lesson.told) continue;
        result.push_back(lesson);
        result.back().pending = false;
        result.back().trials = 0;
    }
    return result;
}

std::vector<Lesson> lessons_of(const Problem& problem, const Standings& standings, const LevelGeometry& geometry, const Beliefs& beliefs) {
    std::vector<Lesson> result;
    for (const Standing& standing : standings.all()) {
        Lesson lesson{standing.configuration, geometry.encode(standing.configuration), {}, 0, {}};
        lesson.told = standing.told();
        lesson.pending = standing.pending();
        lesson.passes = standing.passes();
        if (standing.measured() > 0) {
            for (const GoalFigures& goal : standing.goals) lesson.means.push_back(goal.estimate.mean);
            lesson.replicates = standing.leading().total_runs();
        }
        lesson.trials = standing.trials.size();
        for (const Limit& limit : problem.objective.limits) {
            double sum = 0;
            double count = 0;
            for (const Trial* trial : standing.trials)
                if (const Measurement* measurement = trial->measurement();
                    measurement != nullptr && problem.decision.believes(*measurement))
                    if (const auto margin = margin_of(limit, measurement->metrics); margin && std::isfinite(*margin)) {
                        sum += *margin;
                        ++count;
                    }
            lesson.margins.push_back(count > 0 ? std::optional<double>(sum / count) : std::nullopt);
        }
        for (const Trial* trial : standing.trials)
            if (const Failure* failure = trial->failure()) {
                lesson.works = lesson.works && !teaches(failure->kind);
                lesson.ran_out = !lesson.measured() && (lesson.ran_out || failure->kind == FailureKind::out_of_memory);
            }
        double log_seconds = 0;
        double timed = 0;
        for (const Trial* trial : standing.trials)
            if (trial->cost_seconds() > 0) {
                log_seconds += std::log(trial->cost_seconds());
                ++timed;
            }
        if (timed > 0) lesson.seconds = std::exp(log_seconds / timed);
        lesson.beliefs = beliefs.of(standing.configuration);
        result.push_back(std::move(lesson));
    }
    return result;
}

}  // namespace servetune
