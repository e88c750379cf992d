// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/comparable_figures.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/detail/trial/standing.hpp"
#include "servetune/detail/trial/worst_workload.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// How the reason begins why a configuration that breaks `Decision::never_worse_than` cannot win.
inline constexpr std::string_view guard_words = "worse than the default";
/// Why one cannot win that is no more than slow.
inline constexpr std::string_view slower_words =
    "its load test was ended early: it is surely slower than the best at that time";

/// The search trials of a history, gathered by configuration in the order of their first trial.
/// Points into the history, which must outlive it. Depends on the trials' ids, never on the order
/// in which they were told.
class Standings {
public:
    /// `usual`: the default configuration; nothing: that of the first trial.
    Standings(std::span<const Trial> history, const Objective& objective, const Decision& decision,
              const std::optional<Configuration>& usual = {});
    Standings(std::vector<Trial>&&, const Objective&, const Decision&,
              const std::optional<Configuration>& = {}) = delete;

    [[nodiscard]] const std::vector<Standing>& all() const { return standings_; }
    /// All of the search, by id.
    [[nodiscard]] const std::vector<const Trial*>& trials() const { return trials_; }
    /// Null when the configuration was never asked.
    [[nodiscard]] const Standing* find(const Configuration& configuration) const {
        const auto found = index_.find(configuration);
        return found == index_.end() ? nullptr : &standings_[found->second];
    }
    /// The relative noise of one measurement that the estimates use.
    [[nodiscard]] double noise() const { return noises_.front(); }
    /// The same of each goal, the leading one first.
    [[nodiscard]] const std::vector<double>& noises() const { return noises_; }
    /// By which the figures of goal k are compared.
    [[nodiscard]] const FigureScale& scale(std::size_t k = 0) const { return scales_[k]; }
    /// How the machine changed, by the measurements of the default in goal k.
    [[nodiscard]] const Drift& drift(std::size_t k = 0) const { return drifts_[k]; }
    /// Of goal k in the measurements after the first, those that a configuration was not picked
    /// for; nothing where there are none.
    [[nodiscard]] std::optional<Estimate> measured_again(const Standing& standing,
                                                         std::size_t k = 0) const {
        if (standing.measured() < 2) return std::nullopt;
        return estimate_of(standing.goals[k], k, 1);
    }
    /// What trial `id` of a configuration measured in goal k, the machine's drift with it; nothing:
    /// no figure that counts.
    [[nodiscard]] std::optional<double> as_measured(const Standing& standing, std::uint64_t id,
                                                    std::size_t k = 0) const {
        const GoalFigures& figures = standing.goals[k];
        const auto at =
            std::find(figures.places.begin(), figures.places.end(), static_cast<double>(id));
        if (at == figures.places.end()) return std::nullopt;
        return figures.measured[static_cast<std::size_t>(at - figures.places.begin())];
    }
    /// The gain of one estimate over another in goal k with its interval by Student's t, as one of
    /// `comparisons` that hold together: by the spread of all repeated measurements, nothing
    /// assumed. No interval where none was repeated.
    [[nodiscard]] Gain measured_gain(const Estimate& candidate, const Estimate& base, std::size_t k,
                                     std::size_t comparisons) const {
        const Gain plain = gain_between(goals_[k], candidate, base);
        const Spread& spread = spreads_[k];
        const auto freedom = static_cast<std::size_t>(spread.freedom);
        if (freedom == 0) return Gain::unknown(plain.value, plain.scale);
        const double each =
            1 - std::pow(0.975, 1 / static_cast<double>(std::max<std::size_t>(comparisons, 1)));
        const double runs = 1 / static_cast<double>(candidate.replicates) +
                            1 / static_cast<double>(base.replicates);
        const double reach =
            student_quantile(2 * each, freedom) * std::sqrt(spread.squares / spread.freedom * runs);
        return {plain.value,
                (1 + plain.value) * std::exp(-reach) - 1,
                (1 + plain.value) * std::exp(reach) - 1,
                {},
                {},
                plain.scale};
    }
    /// Configurations that were measured more than once: what the noise was learned from. 0: it is
    /// the assumed one.
    [[nodiscard]] std::size_t replicated() const {
        return static_cast<std::size_t>(std::count_if(
            standings_.begin(), standings_.end(),
            [](const Standing& standing) { return standing.leading().total_runs() > 1; }));
    }
    /// The passing configuration with the best mean in the leading goal; ties: one that is better
    /// in the others, then the one asked first. Null when none passes.
    [[nodiscard]] const Standing* best() const;
    /// The passing configurations whose means no other passing one beats in all goals together; the
    /// best in the leading goal first.
    [[nodiscard]] std::vector<const Standing*> front() const;

private:
    /// Of the values from number `first` on. Runs behind one figure that spread more than the
    /// study's noise are believed over it.
    [[nodiscard]] Estimate estimate_of(const GoalFigures& figures, std::size_t k,
                                       std::size_t first = 0) const {
        double noise = noises_[k];
        double sum = 0;
        double n = 0;
        for (std::size_t i = first; i < figures.values.size(); ++i) {
            sum += figures.runs[i] * figures.values[i];
            n += figures.runs[i];
        }
        if (figures.within.freedom > 0)
            noise = std::max(noise, pooled_noise(noise, {}, figures.within));
        const std::vector<double> places(
            figures.places.begin() + static_cast<std::ptrdiff_t>(first), figures.places.end());
        // What the level there is less well known than that of the checks.
        const std::vector<double> checks =
            default_ ? standings_[*default_].goals[k].places : std::vector<double>{};
        const double unknown =
            std::max(0.0, drifts_[k].variance(places) - drifts_[k].variance(checks));
        return {scales_[k].figure(sum / n), std::sqrt(noise * noise / n + unknown),
                static_cast<std::size_t>(n), scales_[k]};
    }
    /// Of each limit the workloads on which some measurement has its figure.
    using Judged = std::vector<std::set<std::string>>;
    static Judged judged_anywhere(const std::vector<Standing>& standings,
                                  const Objective& objective);
    static void judge(Standing& standing, const Objective& objective, const Decision& decision,
                      const Judged& judged);
    static std::string broken_limit(const Measurement& measurement, const Objective& objective,
                                    const Judged& judged);
    void guard(const Decision& decision);
    /// ln of goal k in each workload, more is better: the mean of what is believed, without drift.
    [[nodiscard]] std::map<std::string, double> by_workload(const Standing& standing, std::size_t k,
                                                            const Decision& decision) const;
    void take_off_drift(std::size_t k, const Decision& decision);
    /// The means of all goals, turned so that more is better.
    [[nodiscard]] std::vector<double> turned_means(const Standing& standing) const;

    std::vector<const Trial*> trials_;
    std::vector<Standing> standings_;
    std::map<Configuration, std::size_t> index_;
    std::optional<std::size_t> default_{};  ///< where the default is in `standings_`
    std::vector<double> noises_{};
    std::vector<FigureScale> scales_{};
    std::vector<Spread> spreads_{};  ///< of each goal: how repeated measurements spread
    std::vector<Drift> drifts_{};
    std::vector<Goal> goals_;
};

inline Standings::Standings(std::span<const Trial> history, const Objective& objective,
                            const Decision& decision, const std::optional<Configuration>& usual)
    : goals_(objective.goals) {
    for (const Trial& trial : history)
        if (trial.of_search()) trials_.push_back(&trial);
    std::sort(trials_.begin(), trials_.end(),
              [](const Trial* a, const Trial* b) { return a->id < b->id; });
    for (const Trial* trial : trials_) {
        const auto [at, is_new] = index_.emplace(trial->configuration, standings_.size());
        if (is_new)
            standings_.push_back(
                {trial->configuration, {}, std::vector<GoalFigures>(goals_.size())});
        standings_[at->second].trials.push_back(trial);
    }
    // A cold start is what will be served: once one was measured or failed, measurements with
    // cached weights count no more.
    const auto with_cache = [](const Trial* trial) {
        return trial->measurement() != nullptr && trial->measurement()->with_cached_weights();
    };
    const auto cold = [](const Trial* trial) {
        return trial->failure() != nullptr ? teaches(trial->failure()->kind)
                                           : trial->measurement() != nullptr &&
                                                 !trial->measurement()->with_cached_weights();
    };
    for (Standing& standing : standings_)
        if (std::any_of(standing.trials.begin(), standing.trials.end(), cold))
            std::erase_if(standing.trials, with_cache);
    const Judged judged = judged_anywhere(standings_, objective);
    for (Standing& standing : standings_) judge(standing, objective, decision, judged);
    for (std::size_t i = 0; i < standings_.size() && !default_; ++i)
        if (!usual || standings_[i].configuration == *usual) default_ = i;
    if (objective.over == Objective::Over::worst)
        take_worst_workload(standings_, objective, default_);
    // A published study is judged by its figures as they are.
    if (decision.rule == Decision::Rule::significant) compare_work(standings_, objective, default_);
    for (std::size_t k = 0; k < goals_.size(); ++k) {
        scales_.push_back(take_scale(standings_, goals_[k], k, default_));
        for (Standing& standing : standings_) standing.goals[k].measured = standing.goals[k].values;
        take_off_drift(k, decision);
        std::vector<std::vector<double>> replicates;
        Spread within;
        for (const Standing& standing : standings_) {
            // What the drift was fitted to spreads less around it than new measurements would.
            if (drifts_[k].taken_off() && default_ && &standing == &standings_[*default_])
                within += drifts_[k].spread();
            else replicates.push_back(standing.goals[k].values);
            within += standing.goals[k].within;
        }
        noises_.push_back(pooled_noise(decision.noise_cv, replicates, within));
        spreads_.push_back(within);
        for (const std::vector<double>& values : replicates) spreads_.back() += Spread::of(values);
        for (Standing& standing : standings_)
            if (standing.measured() > 0)
                standing.goals[k].estimate = estimate_of(standing.goals[k], k);
    }
    guard(decision);
}

inline void Standings::take_off_drift(std::size_t k, const Decision& decision) {
    Drift& drift = drifts_.emplace_back();
    if (!decision.correct_drift || decision.rule == Decision::Rule::published || !default_) return;
    std::vector<DriftCheck> checks;
    std::vector<std::vector<DriftCheck>> others;
    for (const Standing& standing : standings_) {
        const GoalFigures& figures = standing.goals[k];
        std::vector<DriftCheck> all;
        for (std::size_t i = 0; i < figures.values.size(); ++i)
            all.push_back({figures.places[i], std::log(figures.values[i])});
        if (&standing == &standings_[*default_]) checks = std::move(all);
        else others.push_back(std::move(all));
    }
    drift = Drift(std::move(checks), decision.noise_cv, others);
    for (Standing& standing : standings_)
        for (std::size_t i = 0; i < standing.goals[k].values.size(); ++i)
            standing.goals[k].values[i] *= std::exp(-drift.offset(standing.goals[k].places[i]));
}

inline Standings::Judged Standings::judged_anywhere(const std::vector<Standing>& standings,
                                                    const Objective& objective) {
    Judged result(objective.limits.size());
    for (const Standing& standing : standings)
        for (const Trial* trial : standing.trials)
            if (const Measurement* measurement = trial->measurement())
                for (std::size_t i = 0; i < objective.limits.size(); ++i)
                    for (const auto& [workload, value] :
                         objective.limits[i].figures(measurement->metrics))
                        result[i].insert(workload);
    return result;
}

/// Why the limits refuse a measurement; empty: all hold. One whose figure is missing does not hold.
/// Of several workloads a figure may be missing where no measurement has it: answers of one token
/// have no time per token.
inline std::string Standings::broken_limit(const Measurement& measurement,
                                           const Objective& objective, const Judged& judged) {
    std::string reason;
    for (std::size_t i = 0; i < objective.limits.size(); ++i) {
        const Limit& limit = objective.limits[i];
        const auto holds = limit.holds(measurement.metrics);
        if (holds == false) reason = limit.broken_text(measurement.metrics);
        if (measurement.validity.ended_early()) continue;  // its limits were never judged
        if (!holds) reason = limit.unjudged_text();
        if (holds != true || !MetricKey::of(limit.metric).workload.empty()) continue;
        for (const std::string& workload : judged[i]) {
            const bool measured = measurement.metrics.contains(
                MetricKey{objective.leading().metric, workload}.text());
            if (measured && !measurement.metrics.contains(MetricKey{limit.metric, workload}.text()))
                reason = limit.unjudged_text(workload);
        }
    }
    return reason;
}

/// A measurement counts where it has every goal: half of one says nothing of a front. A failure
/// that was not its own takes nothing from what else is known of a configuration; one that was
/// measured as often unsoundly as soundly cannot win.
inline void Standings::judge(Standing& standing, const Objective& objective,
                             const Decision& decision, const Judged& judged) {
    std::string not_its_own;
    std::string not_believed;
    std::size_t unbelieved = 0;
    bool ended_early = false;
    // A load test that was ended early counts only as long as there is no whole one, and cannot
    // win.
    const bool whole =
        std::any_of(standing.trials.begin(), standing.trials.end(), [&](const Trial* trial) {
            const Measurement* measurement = trial->measurement();
            return measurement != nullptr && !measurement->validity.ended_early() &&
                   decision.believes(*measurement);
        });
    for (const Trial* trial : standing.trials) {
        if (const Failure* failure = trial->failure()) {
            (teaches(failure->kind) ? standing.refused : not_its_own) =
                std::string(name_in(failure_kinds, failure->kind)) +
                (failure->message.empty() ? "" : ": " + failure->message);
            continue;
        }
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) continue;
        if (measurement->validity.ended_early() && whole) continue;
        ended_early = ended_early || measurement->validity.ended_early();
        if (!decision.believes(*measurement)) {
            std::vector<std::string> named;  // each once, in their order
            std::string findings;
            for (const Finding& finding : measurement->validity.findings) {
                if (std::find(named.begin(), named.end(), finding.id) != named.end()) continue;
                named.push_back(finding.id);
                findings += (findings.empty() ? "" : ", ") + finding.id;
            }
            not_believed = "unsound measurement: " + findings;
            ++unbelieved;
            continue;
        }
        std::string unusable;
        for (const Goal& goal : objective.goals)
            if (unusable.empty())
                unusable = goal.why_unusable(
                    measurement->metrics,
                    objective.over == Objective::Over::worst || decision.never_worse_than);
        if (!unusable.empty()) {
            standing.refused = std::move(unusable);
            continue;
        }
        for (std::size_t k = 0; k < standing.goals.size(); ++k) {
            const Metric& metric = measurement->metrics.find(objective.goals[k].metric)->second;
            GoalFigures& figures = standing.goals[k];
            figures.values.push_back(metric.value);
            figures.places.push_back(static_cast<double>(trial->id));
            figures.runs.push_back(
                static_cast<double>(std::max<std::size_t>(metric.replicates, 1)));
            figures.within += Spread::of(metric);
        }
        if (std::string reason = broken_limit(*measurement, objective, judged); !reason.empty())
            standing.refused = std::move(reason);
    }
    if (!standing.refused.empty()) return;
    if (ended_early) {
        standing.refused = slower_words;
        return;
    }
    if (unbelieved > 0 && unbelieved >= standing.measured())
        standing.refused = std::move(not_believed);
    else if (standing.measured() == 0) standing.refused = std::move(not_its_own);
}

}  // namespace servetune

#include "servetune/detail/trial/standings_front.hpp"
#include "servetune/detail/trial/standings_guard.hpp"
