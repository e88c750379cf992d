// SPDX-License-Identifier: Apache-2.0
#include "evidence.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {

bool margins_hold(const std::vector<ConfigurationEvidence>& evidence) {
    int balance = 0;
    bool known = false;
    for (const ConfigurationEvidence& entry : evidence) {
        const double margin = believed_margin(entry.beliefs);
        known = known || margin != 0;
        if (margin != 0 && (entry.measured() || !entry.works))
            balance += (margin > 0) == entry.measured() ? 1 : -1;
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
    // A bound at or below 0 has no ratios: the difference, in units of the bound, or of the value
    // where that is 0.
    if (limit.bound <= 0 || value < 0) {
        const double unit =
            limit.bound != 0 ? std::abs(limit.bound) : std::max(std::abs(value), 1e-12);
        return std::clamp((limit.at_least ? 1 : -1) * (value - limit.bound) / unit, -30.0, 30.0);
    }
    constexpr double least = 1e-12;
    const double ratio = std::log(std::max(value, least) / std::max(limit.bound, least));
    return limit.at_least ? ratio : -ratio;
}

std::optional<double> margin_of(const Limit& limit, const Metrics& metrics) {
    std::optional<double> worst;
    for (const auto& [workload, value] : limit.figures(metrics)) {
        const double margin = margin_of(limit, value);
        worst = worst ? std::min(*worst, margin) : margin;
    }
    return worst;
}

std::vector<ConfigurationEvidence> without_pending(
    const std::vector<ConfigurationEvidence>& evidence) {
    std::vector<ConfigurationEvidence> result;
    for (const ConfigurationEvidence& entry : evidence) {
        if (!entry.told) continue;
        result.push_back(entry);
        result.back().pending = false;
        result.back().trials = 0;
    }
    return result;
}

std::vector<ConfigurationEvidence> worth_learning(std::vector<ConfigurationEvidence> evidence,
                                                  const Objective& objective, std::size_t most) {
    if (evidence.size() <= most) return evidence;
    std::vector<bool> kept(evidence.size(), false);
    std::vector<std::size_t> told;
    std::size_t left = most;
    for (std::size_t i = 0; i < evidence.size(); ++i) {
        kept[i] = i == 0 || evidence[i].pending;
        if (!kept[i]) told.push_back(i);
        else if (left > 0) --left;
    }
    stable_sort(told, [&](std::size_t a, std::size_t b) {
        const auto passes = [&](std::size_t i) {
            return evidence[i].measured() && evidence[i].passes;
        };
        if (!passes(a) || !passes(b)) return passes(a) && !passes(b);
        return objective.leading().better(evidence[a].means.front(), evidence[b].means.front());
    });
    const std::size_t best = std::min(left / 2, told.size());
    const std::size_t others = std::min(left, told.size()) - best;
    for (std::size_t i = 0; i < best; ++i) kept[told[i]] = true;
    for (std::size_t i = 0; i < others; ++i)
        kept[told[best + i * (told.size() - best) / others]] = true;
    std::vector<ConfigurationEvidence> result;
    for (std::size_t i = 0; i < evidence.size(); ++i)
        if (kept[i]) result.push_back(std::move(evidence[i]));
    return result;
}

namespace {

/// What the figure of a load test that was ended early counts, beside a whole one: noise^2 / its
/// own error^2, at most 1.
double weight_of_approximate(const Problem& problem, const Standings& standings,
                             const Standing& standing) {
    double error = 0;
    for (const Trial* trial : standing.trials) {
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) continue;
        if (!measurement->validity.ended_early()) return 1;
        const auto* figure = entry_in(measurement->metrics, problem.objective.leading().metric);
        if (figure != nullptr && figure->value > 0)
            error = std::max(error, standings.scale().relative_error(
                                        figure->value, figure->standard_error.value_or(0)));
    }
    return error > standings.noise() ? std::pow(standings.noise() / error, 2) : 1;
}

}  // namespace

std::vector<ConfigurationEvidence> evidence_of(const Problem& problem, const Standings& standings,
                                               const LevelGeometry& geometry,
                                               const Beliefs& beliefs) {
    std::vector<ConfigurationEvidence> result;
    for (const Standing& standing : standings.all()) {
        ConfigurationEvidence entry{
            standing.configuration, geometry.encode(standing.configuration), {}, 0, {}};
        entry.told = standing.told();
        entry.pending = standing.pending();
        entry.passes = standing.passes();
        if (standing.measured() > 0) {
            for (const GoalFigures& goal : standing.goals)
                entry.means.push_back(goal.estimate.judged());
            entry.replicates = standing.leading().total_runs() *
                               weight_of_approximate(problem, standings, standing);
        }
        entry.trials = standing.trials.size();
        for (const Limit& limit : problem.objective.limits) {
            double sum = 0;
            double count = 0;
            for (const Trial* trial : standing.trials)
                if (const Measurement* measurement = trial->measurement();
                    measurement != nullptr && problem.decision.believes(*measurement))
                    if (const auto margin = margin_of(limit, measurement->metrics);
                        margin && std::isfinite(*margin)) {
                        sum += *margin;
                        ++count;
                    }
            entry.margins.push_back(count > 0 ? std::optional<double>(sum / count) : std::nullopt);
        }
        if (problem.decision.never_worse_than)
            entry.margins.push_back(standing.guard_margin);  // one limit more
        for (const Trial* trial : standing.trials)
            if (const Failure* failure = trial->failure()) {
                entry.works = entry.works && !teaches(failure->kind);
                entry.ran_out = !entry.measured() &&
                                (entry.ran_out || failure->kind == FailureKind::out_of_memory);
            }
        double log_seconds = 0;
        double timed = 0;
        for (const Trial* trial : standing.trials)
            if (trial->cost_seconds() > 0) {
                log_seconds += std::log(trial->cost_seconds());
                ++timed;
            }
        if (timed > 0) entry.seconds = std::exp(log_seconds / timed);
        entry.beliefs = beliefs.of(standing.configuration);
        result.push_back(std::move(entry));
    }
    return result;
}

}  // namespace servetune
