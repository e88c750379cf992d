// SPDX-License-Identifier: Apache-2.0
#include "servetune/recommendation.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "verdict.hpp"

#include <ostream>

namespace servetune {

Limit BrokenLimit::loosened() const {
    Limit result{limit.metric, limit.at_least, value};
    if (value != 0) {
        const double step = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 2);
        const double steps = limit.at_least ? std::floor(value / step) : std::ceil(value / step);
        result.bound = step < 1 ? steps / std::round(1 / step) : steps * step;
        if (!result.keeps(value)) result.bound = value;
    }
    if (!limit.written.empty())  // in the same word
        result.written = limit.written.substr(0, limit.written.find_first_of("<>")) +
                         result.readable().substr(result.metric.size() + 1);
    return result;
}

std::optional<Closest> closest_to_passing(const Problem& problem, const Standings& standings) {
    std::optional<Closest> result;
    for (const Standing& standing : standings.all()) {
        if (standing.measured() == 0 || standing.passes()) continue;
        Closest one{standing.configuration, {}};
        bool judged = true;
        for (const Trial* trial : standing.trials) {
            const Measurement* measurement = trial->measurement();
            if (measurement == nullptr || !problem.decision.believes(*measurement)) continue;
            for (const Limit& limit : problem.objective.limits) {
                judged = judged && limit.holds(measurement->metrics).has_value();
                for (const auto& [workload, value] : limit.broken(measurement->metrics)) {
                    const double by = std::abs(value - limit.bound) /
                                      std::max(std::abs(value), std::abs(limit.bound));
                    const auto same =
                        find_if(one.broken, [&, at = workload](const BrokenLimit& other) {
                            return other.limit == limit && other.workload == at;
                        });
                    if (same == one.broken.end())
                        one.broken.push_back({limit, workload, value, by});
                    else if (by > same->by) *same = {limit, workload, value, by};
                }
            }
        }
        // It is refused for something else: a failure, or a limit that could not be judged.
        if (one.broken.empty() || standing.refusal != Refusal::limit || !judged) continue;
        stable_sort(one.broken,
                    [](const BrokenLimit& a, const BrokenLimit& b) { return a.by > b.by; });
        if (!result || one.broken.front().by < result->broken.front().by) result = std::move(one);
    }
    return result;
}

bool only_unsound(const Standing& standing, const Problem& problem) {
    std::size_t believed = 0;
    const auto says_nothing_against_it = [&](const Trial* trial) {
        if (const Failure* failure = trial->failure()) return !teaches(failure->kind);
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr) return false;
        const bool is_believed = problem.decision.believes(*measurement);
        believed += is_believed ? 1 : 0;
        return none_of(problem.objective.limits, [&](const Limit& limit) {
            const auto holds = limit.holds(measurement->metrics);
            return holds == false || (is_believed && !holds);
        });
    };
    return standing.told() && !standing.pending() && !standing.passes() &&
           all_of(standing.trials, says_nothing_against_it) && believed == standing.measured();
}

bool mostly_disturbed(const Standing& standing, const Decision& decision) {
    std::size_t believed = 0;
    std::size_t disturbed = 0;
    for (const Trial* trial : standing.trials) {
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr || !decision.believes(*measurement)) continue;
        ++believed;
        disturbed += measurement->validity.disturbed() ? 1 : 0;
    }
    return decision.enforce_audit && disturbed > 0 && 2 * disturbed >= believed;
}

std::vector<std::string_view> unchecked_answers(const SearchSpace& space,
                                                const Standing& standing) {
    const bool compared = any_of(standing.trials, [](const Trial* trial) {
        return trial->measurement() != nullptr &&
               trial->measurement()->metrics.contains("quality_drop");
    });
    std::vector<std::string_view> result;
    for (const auto& [name, value] : standing.configuration.entries()) {
        const Parameter& parameter = space.at(name);
        if (!compared && value != parameter.default_value && changes_answers(parameter))
            result.push_back(parameter.name);
    }
    return result;
}

const Standing* gains_by_other_work(const Problem& problem, const Standings& standings,
                                    const Standing& base) {
    const Standing* result = nullptr;
    double most = 0;
    for (const Standing& standing : standings.all()) {
        const bool only_by_work =
            standing.refusal == Refusal::none || standing.refusal == Refusal::other_work;
        if (standing.other_work.empty() || standing.measured() == 0 || !only_by_work) continue;
        for (std::size_t k = 0; k < problem.objective.goals.size(); ++k) {
            const Goal& goal = problem.objective.goals[k];
            const double equal =
                goal.gain(standing.goals[k].estimate.judged(), base.goals[k].estimate.judged());
            const double gain = (1 + equal) / standing.goals[k].equal_work - 1;
            if (gain < problem.decision.min_gain || gain < 3 * standings.noises()[k] ||
                gain <= most)
                continue;
            most = gain;
            result = &standing;
        }
    }
    return result;
}

const Standing* doubted_for_work(const Problem& problem, const Standings& standings,
                                 const Standing& chosen, const Standing* base) {
    if (&chosen == base) return gains_by_other_work(problem, standings, *base);
    const bool other_answers =
        any_of(chosen.other_work, [](const LengthMismatch& work) { return work.output; });
    return other_answers && !unchecked_answers(problem.space, chosen).empty() ? &chosen : nullptr;
}

Gain judged_gain(const Problem& problem, const Standings& standings, const Standing& standing,
                 const Standing& base, std::size_t k, double level) {
    if (&standing == &base) return {};
    const Goal goal = problem.objective.goals[k];
    if (problem.is_confirmed()) {
        const PairedComparison paired(problem, standings, k, base);
        if (paired.rounds(standing) > 0) return paired.gain(standing, level);
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
    Gain gain =
        gain_between(goal, standing.goals[k].estimate, base.goals[k].estimate, tried * goals);
    if (const auto fresh = standings.measured_again(standing, k)) {
        const Gain of_fresh = gain_between(goal, *fresh, base.goals[k].estimate, again * goals);
        if (of_fresh.low > gain.low) gain = of_fresh;
    }
    gain.assumed = standings.replicated() == 0;
    return gain;
}

Recommendation recommend(const Problem& problem, std::span<const Trial> history) {
    const Standings standings = problem.standings(history);
    Recommendation result{problem.space.default_configuration()};
    result.recommended = result.default_configuration;
    const Standing* base = standings.find(result.default_configuration);
    result.default_passes = base != nullptr && base->passes();
    for (const Trial& trial : history) {
        const Measurement* measurement = trial.of_search() ? trial.measurement() : nullptr;
        if (measurement == nullptr) continue;
        const bool believed = problem.decision.believes(*measurement);
        ++result.results;
        result.unsound += believed ? 0 : 1;
        result.disturbed +=
            believed && problem.decision.enforce_audit && measurement->validity.disturbed() ? 1 : 0;
    }
    const auto inconclusive = [&](InconclusiveReason doubt) {
        result.conclusion = Conclusion::inconclusive;
        result.doubt = doubt;
        return result;
    };
    result.default_unsound = base != nullptr && only_unsound(*base, problem);
    const Standing* best = standings.best();
    if (best == nullptr) {
        result.closest = closest_to_passing(problem, standings);
        return result.default_unsound ? inconclusive(InconclusiveReason::default_unsound) : result;
    }
    result.best = best->configuration;
    const auto& goals = problem.objective.goals;
    if (problem.objective.several())
        for (const Standing* standing : standings.front()) {
            FrontPoint& point = result.front.emplace_back(FrontPoint{standing->configuration, {}});
            for (std::size_t k = 0; k < goals.size(); ++k)
                point.estimates.push_back(standing->goals[k].estimate);
        }
    if (result.default_unsound) return inconclusive(InconclusiveReason::default_unsound);
    if (result.default_passes && mostly_disturbed(*base, problem.decision))
        return inconclusive(InconclusiveReason::default_disturbed);

    const auto in_any_goal = [&](const auto& gain) {
        for (std::size_t k = 0; k < goals.size(); ++k)
            if (meets_min_gain(problem.decision, gain(k))) return true;
        return false;
    };
    const auto over_default = [&](const Standing& a) {
        return in_any_goal(
            [&](std::size_t k) { return judged_gain(problem, standings, a, *base, k); });
    };
    std::vector<const Standing*> confirmed;
    if (problem.is_confirmed())
        for (const Standing& standing : standings.all())
            if (&standing != base && standing.passes() &&
                (rounds_of(problem, standings, standing, result.default_passes ? base : nullptr) >=
                     least_rounds ||
                 (result.default_passes && over_default(standing))))
                confirmed.push_back(&standing);
    if (!confirmed.empty()) {
        best = result.default_passes ? base : confirmed.front();
        for (const Standing* standing : confirmed)
            if (problem.objective.leading().better(standing->estimate().mean,
                                                   best->estimate().mean))
                best = standing;
        result.best = best->configuration;
    }
    const auto worth_having = [&](const Standing& a, const Standing& b) {
        return in_any_goal([&](std::size_t k) {
            constexpr double likely = 0.95;  // a loss counts before it is proven
            if (!problem.is_confirmed())
                return gain_between(goals[k], a.goals[k].estimate, b.goals[k].estimate);
            Gain over = judged_gain(problem, standings, a, b, k, likely);
            if (rounds_of(problem, standings, a, &b) < least_rounds) over.low = over.value;
            return over;
        });
    };
    const bool not_confirmed = problem.is_confirmed() && confirmed.empty() &&
                               result.default_passes && best != base &&
                               seems_to_gain(problem, *best, *base, problem.decision.min_gain);
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
            const double proven = judged_gain(problem, standings, standing, *base).low;
            if (winner == base || proven > most) winner = &standing, most = proven;
        }
    } else if (result.default_passes && !over_default(*best)) winner = base;
    constexpr double about_as_good =
        1.51;  // of standard errors: 4 measurements against 9 are enough
    const Standing* smallest = winner;
    for (const Standing& candidate : standings.all()) {
        if (!candidate.passes() ||
            !is_reduction_of(problem.space, candidate.configuration, winner->configuration))
            continue;
        // Dropping settings must not drop the gain itself.
        if (result.default_passes && &candidate != base && !over_default(candidate)) continue;
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

    if (smallest != base && (mostly_disturbed(*smallest, problem.decision) ||
                             mostly_disturbed(*winner, problem.decision)))
        return inconclusive(InconclusiveReason::winner_disturbed);
    if ((result.results - result.unsound - result.disturbed) * 4 <= result.results)
        return inconclusive(InconclusiveReason::most_unreliable);
    for (const Standing* one : {smallest, winner, base})
        if (!not_confirmed && one != nullptr && only_warm_starts(*one)) {
            constexpr std::size_t most_trials =
                3;  // the one that was measured, and two that came to nothing
            if (one->measured() == 1 && one->trials.size() <= most_trials)
                result.to_confirm = one->configuration;
            return inconclusive(InconclusiveReason::never_cold);
        }
    if (not_confirmed) return inconclusive(InconclusiveReason::not_confirmed);
    if (const Standing* other = doubted_for_work(problem, standings, *smallest, base)) {
        result.unequal = other->configuration;
        return inconclusive(InconclusiveReason::length_mismatch);
    }

    result.recommended = smallest->configuration;
    result.keep_default = smallest == base;
    result.conclusion = result.keep_default ? Conclusion::keep_default : Conclusion::recommended;
    if (best != smallest && !only_warm_starts(*best))
        result.given_away = judged_gain(problem, standings, *best, *smallest);
    if (result.default_passes) result.gain = judged_gain(problem, standings, *smallest, *base);
    std::vector<Estimate> estimates;
    std::size_t mine = 0;
    for (const Standing& standing : standings.all()) {
        if (!standing.passes()) continue;
        if (&standing == smallest) mine = estimates.size();
        else if (const Gain lead = gain_between(problem.objective.leading(), smallest->estimate(),
                                                standing.estimate());
                 lead.low <= 0 && lead.high >= 0)
            result.tied.push_back(standing.configuration);
        estimates.push_back(standing.estimate());
    }
    if (standings.replicated() > 0)
        result.p_best = probability_best(problem.objective.leading(), estimates, mine);
    return result;
}

std::string text_of(InconclusiveReason doubt) {
    switch (doubt) {
        case InconclusiveReason::none: break;
        case InconclusiveReason::default_unsound:
            return "the measurements of the default cannot be believed";
        case InconclusiveReason::default_disturbed:
            return "the measurements of the default were disturbed";
        case InconclusiveReason::winner_disturbed:
            return "the measurements of the best configuration were disturbed";
        case InconclusiveReason::most_unreliable: return "hardly any result can be relied on";
        case InconclusiveReason::not_confirmed:
            return "what looks best was not confirmed; go on with a larger budget (--trials)";
        case InconclusiveReason::never_cold:
            return "what looks best was never measured from a cold start";
        case InconclusiveReason::length_mismatch:
            return "what looks best answered requests of other lengths than the default";
    }
    return "";
}

std::string text_of(const Recommendation& result) {
    switch (result.conclusion) {
        case Conclusion::nothing_passes: return "nothing passes";
        case Conclusion::keep_default:
            return "keep the default: nothing measured is worth a change";
        case Conclusion::inconclusive:
            return "inconclusive, keep the default: " + text_of(result.doubt);
        case Conclusion::recommended: break;
    }
    const std::string what = difference_text(result.recommended, result.default_configuration);
    if (!result.default_passes) return what + ": the best that passes; the default does not";
    const Gain& gain = result.gain;
    const auto stated = [&](double value) {
        const double number = gain.scale.stated(value);
        const std::string text =
            gain.scale.ratios() ? percent_text(number, 2) : short_number_text(number);
        return (number < 0 ? "" : "+") + text;
    };
    return what + ": " + stated(gain.value) + " over the default" +
           (gain.has_interval() ? " (" + percent_text(gain.level, 0) + ": " + stated(gain.low) +
                                      " to " + stated(gain.high) + ")"
                                : "");
}

std::ostream& operator<<(std::ostream& out, const Recommendation& result) {
    return out << text_of(result);
}

}  // namespace servetune
