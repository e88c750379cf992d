// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial/decision.hpp"
#include "servetune/trial/objective.hpp"
#include "servetune/trial/trial.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Everything that the told trials of one configuration say together.
struct Standing {
    Configuration configuration;
    std::vector<const Trial*> trials;    ///< told and pending, by id
    std::vector<double> values;          ///< the objective of each usable measurement, by trial id
    Estimate estimate{};                 ///< meaningful when values is not empty
    std::string refused{};               ///< why it cannot win; empty: it can
    std::vector<std::string> unknown{};  ///< limits on metrics that its measurements do not have

    [[nodiscard]] bool told() const {
        return std::any_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    [[nodiscard]] bool pending() const {
        return !std::all_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    /// May win: measured, no failure, no limit broken, not unsound where the audit is enforced.
    [[nodiscard]] bool passes() const { return !values.empty() && refused.empty(); }
};

/// The search trials of a history, gathered by configuration in the order of their first trial. Points into the history, which
/// must outlive it. Depends on the trials' ids, never on the order in which they were told.
class Standings {
public:
    Standings(std::span<const Trial> history, const Objective& objective, const Decision& decision);

    [[nodiscard]] const std::vector<Standing>& all() const { return standings_; }
    /// Null when the configuration was never asked.
    [[nodiscard]] const Standing* find(const Configuration& configuration) const {
        const auto found = index_.find(configuration);
        return found == index_.end() ? nullptr : &standings_[found->second];
    }
    /// The relative noise of one measurement that the estimates use.
    [[nodiscard]] double noise() const { return noise_; }
    /// Of the measurements after the first, that a configuration was not picked for; nothing where there are none.
    [[nodiscard]] std::optional<Estimate> measured_again(const Standing& standing) const {
        if (standing.values.size() < 2) return std::nullopt;
        return estimate_of(std::span(standing.values).subspan(1));
    }
    /// The passing configuration with the best mean (ties: the one asked first); null when none passes.
    [[nodiscard]] const Standing* best() const;

private:
    [[nodiscard]] Estimate estimate_of(std::span<const double> values) const {
        double sum = 0;
        for (const double value : values) sum += value;
        const auto n = static_cast<double>(values.size());
        return {sum / n, noise_ / std::sqrt(n), values.size()};
    }
    static void judge(Standing& standing, const Objective& objective, const Decision& decision);

    std::vector<Standing> standings_;
    std::map<Configuration, std::size_t> index_;
    double noise_ = 0;
    Direction direction_;
};

inline Standings::Standings(std::span<const Trial> history, const Objective& objective, const Decision& decision)
    : direction_(objective.direction) {
    std::vector<const Trial*> by_id;
    for (const Trial& trial : history)
        if (trial.of_search()) by_id.push_back(&trial);
    std::sort(by_id.begin(), by_id.end(), [](const Trial* a, const Trial* b) { return a->id < b->id; });
    for (const Trial* trial : by_id) {
        const auto [at, is_new] = index_.emplace(trial->configuration, standings_.size());
        if (is_new) standings_.push_back({trial->configuration, {}, {}});
        standings_[at->second].trials.push_back(trial);
    }
    std::vector<std::vector<double>> replicates;
    for (Standing& standing : standings_) {
        judge(standing, objective, decision);
        replicates.push_back(standing.values);
    }
    noise_ = pooled_noise(decision.noise_cv, replicates);
    for (Standing& standing : standings_)
        if (!standing.values.empty()) standing.estimate = estimate_of(standing.values);
}

inline void Standings::judge(Standing& standing, const Objective& objective, const Decision& decision) {
    for (const Trial* trial : standing.trials) {
        if (const Failure* failure = trial->failure()) {
            standing.refused =
                std::string(name_in(failure_kinds, failure->kind)) + (failure->message.empty() ? "" : ": " + failure->message);
            continue;
        }
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) continue;
        if (decision.enforce_audit && measurement->validity.verdict == Verdict::unsound) {
            std::string findings;
            for (const Finding& finding : measurement->validity.findings) findings += (findings.empty() ? "" : ", ") + finding.id;
            standing.refused = "unsound measurement: " + findings;
            continue;
        }
        const auto metric = measurement->metrics.find(objective.metric);
        if (metric == measurement->metrics.end() || !(metric->second.value > 0)) {
            standing.refused = metric == measurement->metrics.end()
                                   ? "the result has no " + objective.metric
                                   : objective.metric + " = " + text_of(metric->second.value) + " is not positive";
            continue;
        }
        standing.values.push_back(metric->second.value);
        for (const Limit& limit : objective.limits) {
            const auto holds = limit.holds(measurement->metrics);
            const auto got = measurement->metrics.find(limit.metric);
            if (holds == false)
                standing.refused = "limit " + limit.text() + " broken" +
                                   (got != measurement->metrics.end() ? ": " + text_of(got->second.value) : " on one workload");
            if (!holds && std::find(standing.unknown.begin(), standing.unknown.end(), limit.text()) == standing.unknown.end())
                standing.unknown.push_back(limit.text());
        }
    }
}

inline const Standing* Standings::best() const {
    const Standing* best = nullptr;
    for (const Standing& standing : standings_) {
        if (!standing.passes()) continue;
        const bool wins = best == nullptr || (direction_ == Direction::maximize ? standing.estimate.mean > best->estimate.mean
                                                                                : standing.estimate.mean < best->estimate.mean);
        if (wins) best = &standing;
    }
    return best;
}

}  // namespace servetune
