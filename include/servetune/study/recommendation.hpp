// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/strategy.hpp"
#include "servetune/trial/standings.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace servetune {

/// One of several answers to several goals: none that passes is better in one of them without being worse in another, by the means.
struct FrontPoint {
    Configuration configuration;
    std::vector<Estimate> estimates;  ///< of each goal, the leading one first
};

/// What a history says should be served, and how sure that is.
struct Recommendation {
    Configuration default_configuration;
    bool default_passes = false;          ///< otherwise there is nothing to compare with, and `gain` means nothing
    bool default_unsound = false;         ///< it was measured, but the audit refuses what was measured: how good it is, is not known
    std::optional<Configuration> best{};  ///< the passing configuration with the best mean; nothing: none passes
    Configuration recommended{};          ///< the smallest command that keeps the gain of `best`; the default when nothing beats it
    bool keep_default = true;
    Gain gain{};        ///< of `recommended` over the default, judged as the best-looking of all that were tried (`judged_gain`)
    double p_best = 0;  ///< probability that `recommended` is truly the best of all passing ones
    std::vector<Configuration> tied{};   ///< other passing ones whose 95 % interval against `recommended` holds 0
    std::vector<std::string> unknown{};  ///< limits that could not be judged on `recommended`
    std::vector<FrontPoint> front{};     ///< where there are several goals; the best in the leading one first
};

/// How many parameters `configuration` sets away from the default configuration; what its command has more than the default's.
inline std::size_t settings_beyond_default(const SearchSpace& space, const Configuration& configuration) {
    return static_cast<std::size_t>(std::count_if(configuration.entries().begin(), configuration.entries().end(),
                                                  [&](const auto& entry) { return entry.second != space.at(entry.first).default_value; }));
}

/// Whether `small` can be had from `large` by dropping settings: every setting of it is one of `large`'s or a default.
inline bool is_reduction_of(const SearchSpace& space, const Configuration& small, const Configuration& large) {
    return std::all_of(small.entries().begin(), small.entries().end(), [&](const auto& entry) {
        const Value* value = large.find(entry.first);
        return (value != nullptr && *value == entry.second) || entry.second == space.at(entry.first).default_value;
    });
}

/// Whether all that keeps a configuration from passing is that what was measured cannot be believed, or failures that were not its own.
inline bool only_unsound(const Standing& standing, const Problem& problem) {
    std::size_t believed = 0;
    const auto says_nothing_against_it = [&](const Trial* trial) {
        if (const Failure* failure = trial->failure()) return !teaches(failure->kind);
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) return false;
        believed += problem.decision.believes(*measurement) ? 1 : 0;
        return std::none_of(problem.objective.limits.begin(), problem.objective.limits.end(),
                            [&](const Limit& limit) { return limit.holds(measurement->metrics) == false; });
    };
    return standing.told() && !standing.pending() && !standing.passes() &&
           std::all_of(standing.trials.begin(), standing.trials.end(), says_nothing_against_it) && believed == standing.values.size();
}

/// The gain of one of the configurations that were tried over the default, in goal k. What looks best of thirty measurements is the luckiest of them too, so a
/// plain interval would find a gain in a quarter of the studies in which there is none (tests/unit/aa_test.cpp). Two intervals account for that, and the
/// one that says more counts: that of all measurements, held together with those of all passing configurations and goals; and that of the measurements
/// after each one's first, for which nothing was picked, held together with those of all that were measured again. Each errs in one study of forty.
inline Gain judged_gain(const Problem& problem, const Standings& standings, const Standing& standing, const Standing& base,
                        std::size_t k = 0) {
    std::size_t tried = 0;
    std::size_t again = 0;
    for (const Standing& other : standings.all()) {
        if (&other == &base || !other.passes()) continue;
        ++tried;
        again += standings.measured_again(other) ? 1 : 0;
    }
    const std::vector<Goal> goals = problem.objective.goals();
    const Gain of_all = gain_between(goals[k], standing.of_goal(k), base.of_goal(k), tried * goals.size());
    const auto fresh = standings.measured_again(standing, k);
    if (!fresh || &standing == &base) return of_all;
    const Gain of_fresh = gain_between(goals[k], *fresh, base.of_goal(k), again * goals.size());
    return of_fresh.low > of_all.low ? of_fresh : of_all;
}

/// The rule, for every strategy: the best passing configuration wins if it is worth having over the default; then every measured
/// configuration that only drops settings from it and loses less than is worth having replaces it, fewest settings first. A flag
/// whose effect is not worth having is thus never recommended. A default whose measurement is unsound stays recommended: that
/// another is better cannot be concluded from it.
///
/// Of several goals the leading one decides who is best; worth having is then what is worth it in any of them, so that neither the default nor a smaller
/// command replaces a configuration that is as good in the leading goal and clearly better in another.
inline Recommendation recommend(const Problem& problem, std::span<const Trial> history) {
    const Standings standings(history, problem.objective, problem.decision);
    Recommendation result{problem.space.default_configuration()};
    result.recommended = result.default_configuration;
    const Standing* base = standings.find(result.default_configuration);
    result.default_passes = base != nullptr && base->passes();
    const Standing* best = standings.best();
    if (best == nullptr) return result;
    result.best = best->configuration;
    const std::vector<Goal> goals = problem.objective.goals();
    if (problem.objective.several())
        for (const Standing* standing : standings.front()) {
            FrontPoint& point = result.front.emplace_back(FrontPoint{standing->configuration, {}});
            for (std::size_t k = 0; k < goals.size(); ++k) point.estimates.push_back(standing->of_goal(k));
        }
    result.default_unsound = base != nullptr && only_unsound(*base, problem);
    if (result.default_unsound) return result;

    const auto gain = [&](const Standing& a, const Standing& b) { return gain_between(problem.objective, a.estimate, b.estimate); };
    const auto worth_having = [&](const Standing& a, const Standing& b) {
        for (std::size_t k = 0; k < goals.size(); ++k)
            if (worth_it(problem.decision, gain_between(goals[k], a.of_goal(k), b.of_goal(k)))) return true;
        return false;
    };
    const Standing* winner = best;
    const auto over_default = [&](const Standing& a) {
        for (std::size_t k = 0; k < goals.size(); ++k)
            if (worth_it(problem.decision, judged_gain(problem, standings, a, *base, k))) return true;
        return false;
    };
    if (result.default_passes && !over_default(*best)) winner = base;
    const Standing* smallest = winner;
    for (const Standing& candidate : standings.all()) {
        if (!candidate.passes() || !is_reduction_of(problem.space, candidate.configuration, winner->configuration)) continue;
        if (worth_having(*winner, candidate)) continue;
        const auto fewer = settings_beyond_default(problem.space, candidate.configuration);
        const auto fewest = settings_beyond_default(problem.space, smallest->configuration);
        if (fewer < fewest || (fewer == fewest && problem.objective.better(candidate.estimate.mean, smallest->estimate.mean)))
            smallest = &candidate;
    }
    // Dropping settings must not drop the gain itself.
    if (result.default_passes && smallest != base && !over_default(*smallest)) smallest = winner;

    result.recommended = smallest->configuration;
    result.keep_default = smallest == base;
    result.unknown = smallest->unknown;
    if (result.default_passes) result.gain = judged_gain(problem, standings, *smallest, *base);
    std::vector<Estimate> estimates;
    std::size_t mine = 0;
    for (const Standing& standing : standings.all()) {
        if (!standing.passes()) continue;
        if (&standing == smallest) mine = estimates.size();
        else if (const Gain lead = gain(*smallest, standing); lead.low <= 0 && lead.high >= 0)
            result.tied.push_back(standing.configuration);
        estimates.push_back(standing.estimate);
    }
    result.p_best = probability_best(problem.objective, estimates, mine);
    return result;
}

}  // namespace servetune
