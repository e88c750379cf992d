// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/dominance.hpp"
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
    std::vector<const Trial*> trials;                   ///< told and pending, by id
    std::vector<double> values;                         ///< the leading goal of each usable measurement, by trial id
    Estimate estimate{};                                ///< meaningful when values is not empty
    std::string refused{};                              ///< why it cannot win; empty: it can
    std::vector<std::string> unknown{};                 ///< limits on metrics that its measurements do not have
    std::vector<std::vector<double>> further_values{};  ///< of each further goal, as `values`
    std::vector<Estimate> further{};                    ///< of each further goal, as `estimate`
    std::vector<std::vector<double>> runs{};            ///< of each goal: how many runs are behind each of its values; most often 1
    std::vector<Spread> within{};                       ///< of each goal: how the runs behind its values spread

    [[nodiscard]] bool told() const {
        return std::any_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    [[nodiscard]] bool pending() const {
        return !std::all_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    /// Of goal k, the leading one being 0.
    [[nodiscard]] const Estimate& of_goal(std::size_t k) const { return k == 0 ? estimate : further[k - 1]; }
    [[nodiscard]] const std::vector<double>& of_goal_values(std::size_t k) const { return k == 0 ? values : further_values[k - 1]; }
    /// Of the leading goal, the runs behind each figure counted.
    [[nodiscard]] double measurements() const {
        double sum = 0;
        for (const double count : runs.front()) sum += count;
        return sum;
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
    [[nodiscard]] double noise() const { return noises_.front(); }
    /// The same of each goal, the leading one first.
    [[nodiscard]] const std::vector<double>& noises() const { return noises_; }
    /// Of goal k in the measurements after the first, those that a configuration was not picked for; nothing where there are none.
    [[nodiscard]] std::optional<Estimate> measured_again(const Standing& standing, std::size_t k = 0) const {
        if (standing.values.size() < 2) return std::nullopt;
        return estimate_of(standing, k, 1);
    }
    /// Configurations that were measured more than once: what the noise was learned from. 0: it is the assumed one.
    [[nodiscard]] std::size_t replicated() const {
        return static_cast<std::size_t>(std::count_if(standings_.begin(), standings_.end(), [](const Standing& standing) {
            return !standing.values.empty() && standing.measurements() > 1;
        }));
    }
    /// The passing configuration with the best mean in the leading goal; ties: one that is better in the others, then the one asked
    /// first. Null when none passes.
    [[nodiscard]] const Standing* best() const;
    /// The passing configurations whose means no other passing one beats in all goals together; the best in the leading goal first.
    [[nodiscard]] std::vector<const Standing*> front() const;

private:
    /// Of the values from number `first` on. Runs behind one figure that spread more than the study's noise are believed over it.
    [[nodiscard]] Estimate estimate_of(const Standing& standing, std::size_t k, std::size_t first = 0) const {
        const std::vector<double>& values = standing.of_goal_values(k);
        double sum = 0;
        double n = 0;
        for (std::size_t i = first; i < values.size(); ++i) {
            sum += standing.runs[k][i] * values[i];
            n += standing.runs[k][i];
        }
        double noise = noises_[k];
        if (standing.within[k].freedom > 0) noise = std::max(noise, pooled_noise(noise, {}, standing.within[k]));
        return {sum / n, noise / std::sqrt(n), static_cast<std::size_t>(n)};
    }
    static void judge(Standing& standing, const std::vector<Goal>& goals, const Objective& objective, const Decision& decision);
    /// The means of all goals, turned so that more is better.
    [[nodiscard]] std::vector<double> turned_means(const Standing& standing) const;

    std::vector<Standing> standings_;
    std::map<Configuration, std::size_t> index_;
    std::vector<double> noises_{};
    std::vector<Goal> goals_;
};

inline Standings::Standings(std::span<const Trial> history, const Objective& objective, const Decision& decision)
    : goals_(objective.goals()) {
    std::vector<const Trial*> by_id;
    for (const Trial& trial : history)
        if (trial.of_search()) by_id.push_back(&trial);
    std::sort(by_id.begin(), by_id.end(), [](const Trial* a, const Trial* b) { return a->id < b->id; });
    for (const Trial* trial : by_id) {
        const auto [at, is_new] = index_.emplace(trial->configuration, standings_.size());
        if (is_new) standings_.push_back({trial->configuration, {}, {}});
        standings_[at->second].trials.push_back(trial);
    }
    for (Standing& standing : standings_) judge(standing, goals_, objective, decision);
    for (std::size_t k = 0; k < goals_.size(); ++k) {
        std::vector<std::vector<double>> replicates;
        Spread within;
        for (const Standing& standing : standings_) {
            replicates.push_back(standing.of_goal_values(k));
            within += standing.within[k];
        }
        noises_.push_back(pooled_noise(decision.noise_cv, replicates, within));
        for (Standing& standing : standings_)
            if (!standing.values.empty()) (k == 0 ? standing.estimate : standing.further[k - 1]) = estimate_of(standing, k);
    }
}

/// A measurement counts where it has every goal: half of one says nothing of a front. A failure that was not its own takes nothing from what else is known of a
/// configuration; one that was measured as often unsoundly as soundly cannot win.
inline void Standings::judge(Standing& standing, const std::vector<Goal>& goals, const Objective& objective, const Decision& decision) {
    standing.further_values.resize(goals.size() - 1);
    standing.further.resize(goals.size() - 1);
    standing.runs.resize(goals.size());
    standing.within.resize(goals.size());
    std::string not_its_own;
    std::string not_believed;
    std::size_t unbelieved = 0;
    for (const Trial* trial : standing.trials) {
        if (const Failure* failure = trial->failure()) {
            (teaches(failure->kind) ? standing.refused : not_its_own) =
                std::string(name_in(failure_kinds, failure->kind)) + (failure->message.empty() ? "" : ": " + failure->message);
            continue;
        }
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) continue;
        if (!decision.believes(*measurement)) {
            std::string findings;
            for (const Finding& finding : measurement->validity.findings) findings += (findings.empty() ? "" : ", ") + finding.id;
            not_believed = "unsound measurement: " + findings;
            ++unbelieved;
            continue;
        }
        const auto wrong = std::find_if(goals.begin(), goals.end(), [&](const Goal& goal) {
            const auto metric = measurement->metrics.find(goal.metric);
            return metric == measurement->metrics.end() || !(metric->second.value > 0);
        });
        if (wrong != goals.end()) {
            const auto metric = measurement->metrics.find(wrong->metric);
            standing.refused = metric == measurement->metrics.end()
                                   ? "the result has no " + wrong->metric
                                   : wrong->metric + " = " + short_number_text(metric->second.value) + " is not positive";
            continue;
        }
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const Metric& metric = measurement->metrics.find(goals[k].metric)->second;
            (k == 0 ? standing.values : standing.further_values[k - 1]).push_back(metric.value);
            standing.runs[k].push_back(static_cast<double>(std::max<std::size_t>(metric.replicates, 1)));
            standing.within[k] += Spread::of(metric);
        }
        for (const Limit& limit : objective.limits) {
            const auto holds = limit.holds(measurement->metrics);
            if (holds == false) standing.refused = limit.broken_text(measurement->metrics);
            if (!holds && std::find(standing.unknown.begin(), standing.unknown.end(), limit.text()) == standing.unknown.end())
                standing.unknown.push_back(limit.text());
        }
    }
    if (!standing.refused.empty()) return;
    if (unbelieved > 0 && unbelieved >= standing.values.size()) standing.refused = std::move(not_believed);
    else if (standing.values.empty()) standing.refused = std::move(not_its_own);
}

inline const Standing* Standings::best() const {
    const Standing* best = nullptr;
    for (const Standing& standing : standings_) {
        if (!standing.passes()) continue;
        const bool wins = best == nullptr || goals_.front().better(standing.estimate.mean, best->estimate.mean) ||
                          (standing.estimate.mean == best->estimate.mean && dominates(turned_means(standing), turned_means(*best)));
        if (wins) best = &standing;
    }
    return best;
}

inline std::vector<double> Standings::turned_means(const Standing& standing) const {
    std::vector<double> result;
    for (std::size_t k = 0; k < goals_.size(); ++k)
        result.push_back(goals_[k].direction == Direction::maximize ? standing.of_goal(k).mean : -standing.of_goal(k).mean);
    return result;
}

inline std::vector<const Standing*> Standings::front() const {
    std::vector<const Standing*> passing;
    std::vector<std::vector<double>> means;
    for (const Standing& standing : standings_) {
        if (!standing.passes()) continue;
        passing.push_back(&standing);
        means.push_back(turned_means(standing));
    }
    std::vector<const Standing*> result;
    for (const std::size_t i : non_dominated(means)) result.push_back(passing[i]);
    std::stable_sort(result.begin(), result.end(),
                     [&](const Standing* a, const Standing* b) { return goals_.front().better(a->estimate.mean, b->estimate.mean); });
    return result;
}

}  // namespace servetune
