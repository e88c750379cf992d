// SPDX-License-Identifier: Apache-2.0
#include "servetune/recommendation.hpp"

#include "servetune/detail/study/reliance.hpp"
#include "servetune/detail/study/smaller_command.hpp"
#include "servetune/detail/study/unequal_work.hpp"
#include "servetune/detail/trial/standings.hpp"
#include "servetune/strategy.hpp"

namespace servetune {

Gain judged_gain(const Problem& problem, const Standings& standings, const Standing& standing,
                 const Standing& base, std::size_t k) {
    if (&standing == &base) return {};
    const Goal goal = problem.objective.goals[k];
    if (problem.is_confirmed()) {
        const PairedFigures paired(standings, goal, k, base);
        if (paired.rounds(standing) > 0) return paired.gain(standing);
        const Gain plain = gain_between(goal, standing.goals[k].estimate, base.goals[k].estimate);
        return Gain::unknown(plain.value, plain.scale);
    }
    std::size_t tried = 0;
    std::size_t again = 0;
    for (const Standing& other : standings.all()) {
        if (&other == &base || !other.passes()) continue;
        ++tried;
        again += standings.measured_again(other) ? 1 : 0;
    }
    const std::size_t goals = problem.objective.goals.size();
    const Gain of_all =
        gain_between(goal, standing.goals[k].estimate, base.goals[k].estimate, tried * goals);
    Gain decided = of_all;
    std::size_t comparisons = tried * goals;
    Estimate mine = standing.goals[k].estimate;
    if (const auto fresh = standings.measured_again(standing, k)) {
        const Gain of_fresh = gain_between(goal, *fresh, base.goals[k].estimate, again * goals);
        if (of_fresh.low > of_all.low) {
            decided = of_fresh;
            mine = *fresh;
            comparisons = again * goals;
        }
    }
    Gain stated = standings.measured_gain(mine, base.goals[k].estimate, k, comparisons);
    stated.proven = decided.low;
    stated.excluded = decided.high;
    return stated;
}

Recommendation recommend(const Problem& problem, std::span<const Trial> history) {
    const Standings standings(history, problem.objective, problem.decision,
                              problem.space.default_configuration());
    Recommendation result{problem.space.default_configuration()};
    result.recommended = result.default_configuration;
    const Standing* base = standings.find(result.default_configuration);
    result.default_passes = base != nullptr && base->passes();
    std::size_t reliable = 0;
    for (const Trial& trial : history) {
        const Measurement* measurement = trial.of_search() ? trial.measurement() : nullptr;
        if (measurement == nullptr) continue;
        const bool believed = problem.decision.believes(*measurement);
        const bool disturbed = problem.decision.enforce_audit && measurement->validity.disturbed();
        ++result.results;
        result.unsound += believed ? 0 : 1;
        result.disturbed += disturbed ? 1 : 0;
        reliable += believed && !disturbed ? 1 : 0;
    }
    const auto inconclusive = [&](Doubt doubt) {
        result.conclusion = Conclusion::inconclusive;
        result.doubt = doubt;
        return result;
    };
    result.default_unsound = base != nullptr && only_unsound(*base, problem);
    const Standing* best = standings.best();
    if (best == nullptr) result.closest = closest_to_passing(problem, standings);
    if (best == nullptr)
        return result.default_unsound ? inconclusive(Doubt::default_unsound) : result;
    result.best = best->configuration;
    const std::vector<Goal> goals = problem.objective.goals;
    if (problem.objective.several())
        for (const Standing* standing : standings.front()) {
            FrontPoint& point = result.front.emplace_back(FrontPoint{standing->configuration, {}});
            for (std::size_t k = 0; k < goals.size(); ++k)
                point.estimates.push_back(standing->goals[k].estimate);
        }
    if (result.default_unsound) return inconclusive(Doubt::default_unsound);
    if (result.default_passes && mostly_disturbed(*base, problem.decision))
        return inconclusive(Doubt::default_disturbed);

    const auto gain = [&](const Standing& a, const Standing& b) {
        return gain_between(problem.objective.leading(), a.estimate(), b.estimate());
    };
    std::vector<const Standing*> confirmed;
    if (problem.is_confirmed())
        for (const Standing& standing : standings.all())
            if (&standing != base && standing.passes() &&
                rounds_of(problem, standings, standing, result.default_passes ? base : nullptr) >=
                    least_rounds)
                confirmed.push_back(&standing);
    if (!confirmed.empty()) {
        best = result.default_passes ? base : confirmed.front();
        for (const Standing* standing : confirmed)
            if (problem.objective.leading().better(standing->estimate().mean,
                                                   best->estimate().mean))
                best = standing;
        result.best = best->configuration;
    }
    const auto may_win = [&](const Standing& a) {
        return !problem.is_confirmed() ||
               std::find(confirmed.begin(), confirmed.end(), &a) != confirmed.end();
    };
    const auto worth_having = [&](const Standing& a, const Standing& b) {
        for (std::size_t k = 0; k < goals.size(); ++k) {
            Gain over = problem.is_confirmed() && &a != &b
                            ? judged_gain(problem, standings, a, b, k)
                            : gain_between(goals[k], a.goals[k].estimate, b.goals[k].estimate);
            over.proven.reset();  // a loss counts before it is proven
            if (!over.has_interval()) over.low = over.value;
            if (worth_it(problem.decision, over)) return true;
        }
        return false;
    };
    const auto over_default = [&](const Standing& a) {
        for (std::size_t k = 0; k < goals.size() && may_win(a); ++k)
            if (worth_it(problem.decision, judged_gain(problem, standings, a, *base, k)))
                return true;
        return false;
    };
    const auto looks_better = [&] {
        for (std::size_t k = 0; k < goals.size(); ++k)
            if (gain_between(goals[k], best->goals[k].estimate, base->goals[k].estimate).value >=
                problem.decision.min_gain)
                return true;
        return false;
    };
    const bool not_confirmed = problem.is_confirmed() && confirmed.empty() &&
                               result.default_passes && best != base && looks_better();
    const Standing* winner = best;
    const bool by_proof = result.default_passes && !problem.objective.several() &&
                          problem.decision.rule == Decision::Rule::significant;
    if (by_proof) {
        // What looks best may be one lucky run: the largest gain that is proven wins, for all were
        // judged together.
        winner = base;
        double most = 0;
        for (const Standing& standing : standings.all()) {
            if (!standing.passes() || &standing == base || !over_default(standing)) continue;
            const double proven = judged_gain(problem, standings, standing, *base).at_least();
            if (winner != base && proven <= most) continue;
            winner = &standing;
            most = proven;
        }
    } else if (result.default_passes && !over_default(*best)) winner = base;
    constexpr double about_as_good =
        1.51;  // of standard errors: 4 measurements against 9 are enough
    const Standing* smallest = winner;
    for (const Standing& candidate : standings.all()) {
        if (!candidate.passes() ||
            !is_reduction_of(problem.space, candidate.configuration, winner->configuration))
            continue;
        if (&candidate != winner && &candidate != base && result.default_passes &&
            !may_win(candidate))
            continue;
        if (worth_having(*winner, candidate)) continue;
        // One run with 3 % noise against nine can hide 6 %: a smaller one must be known about as
        // well.
        if (by_proof && !problem.is_confirmed() &&
            candidate.estimate().relative_error > about_as_good * winner->estimate().relative_error)
            continue;
        const auto fewer = settings_beyond_default(problem.space, candidate.configuration);
        const auto fewest = settings_beyond_default(problem.space, smallest->configuration);
        if (fewer < fewest ||
            (fewer == fewest && problem.objective.leading().better(candidate.estimate().mean,
                                                                   smallest->estimate().mean)))
            smallest = &candidate;
    }
    // Dropping settings must not drop the gain itself.
    if (result.default_passes && smallest != base && !over_default(*smallest)) smallest = winner;

    if (smallest != base && (mostly_disturbed(*smallest, problem.decision) ||
                             mostly_disturbed(*winner, problem.decision)))
        return inconclusive(Doubt::winner_disturbed);
    if (reliable * 4 <= result.results) return inconclusive(Doubt::most_unreliable);
    for (const Standing* one : {smallest, winner, base})
        if (!not_confirmed && one != nullptr && only_with_cached_weights(*one)) {
            constexpr std::size_t most_trials =
                3;  // the one that was measured, and two that came to nothing
            if (one->measured() == 1 && one->trials.size() <= most_trials)
                result.to_confirm = one->configuration;
            return inconclusive(Doubt::never_cold);
        }
    if (not_confirmed) return inconclusive(Doubt::not_confirmed);
    if (const Standing* other = doubted_for_work(problem, standings, *smallest, base)) {
        result.unequal = other->configuration;
        return inconclusive(Doubt::unequal_work);
    }

    result.recommended = smallest->configuration;
    result.keep_default = smallest == base;
    result.conclusion = result.keep_default ? Conclusion::keep_default : Conclusion::recommended;
    if (best != smallest && !only_with_cached_weights(*best))
        result.given_away = judged_gain(problem, standings, *best, *smallest);
    if (result.default_passes) result.gain = judged_gain(problem, standings, *smallest, *base);
    std::vector<Estimate> estimates;
    std::size_t mine = 0;
    for (const Standing& standing : standings.all()) {
        if (!standing.passes()) continue;
        if (&standing == smallest) mine = estimates.size();
        else if (const Gain lead = gain(*smallest, standing); lead.low <= 0 && lead.high >= 0)
            result.tied.push_back(standing.configuration);
        estimates.push_back(standing.estimate());
    }
    if (standings.replicated() > 0)
        result.p_best = probability_best(problem.objective.leading(), estimates, mine);
    return result;
}

}  // namespace servetune
