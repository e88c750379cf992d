// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "confirmation.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/recommendation.hpp"

namespace servetune {

/// How many parameters `configuration` sets away from the default configuration; what its command
/// has more than the default's.
inline std::size_t settings_beyond_default(const SearchSpace& space,
                                           const Configuration& configuration) {
    return count_if(configuration.entries(), [&](const auto& entry) {
        return entry.second != space.at(entry.first).default_value;
    });
}

/// Whether `small` can be had from `large` by dropping settings: every setting of it is one of
/// `large`'s or a default.
inline bool is_reduction_of(const SearchSpace& space, const Configuration& small,
                            const Configuration& large) {
    return all_of(small.entries(), [&large, &space](const auto& entry) {
        const Value* value = large.find(entry.first);
        return (value != nullptr && *value == entry.second) ||
               entry.second == space.at(entry.first).default_value;
    });
}

// Whether what was measured of a configuration can be relied on.

/// Whether all that keeps a configuration from passing is that what was measured cannot be
/// believed, or failures that were not its own.
bool only_unsound(const Standing& standing, const Problem& problem);

/// Whether at least half of what is believed of a configuration was measured while something else
/// used the machine.
bool mostly_disturbed(const Standing& standing, const Decision& decision);

/// Whether all that was measured of a configuration were warm starts.
inline bool only_warm_starts(const Standing& standing) {
    return standing.measured() > 0 && none_of(standing.trials, [](const Trial* trial) {
               return trial->measurement() != nullptr && !trial->measurement()->warm_start();
           });
}

/// Whether a parameter changes what a model computes, and with it the answers.
inline bool changes_answers(const Parameter& parameter) {
    return parameter.concept_name == "quantization" || parameter.concept_name == "kv_cache_dtype";
}

/// The parameters by which a configuration may answer otherwise than the default, where no
/// measurement of it has compared the answers (`quality_drop`).
std::vector<std::string_view> unchecked_answers(const SearchSpace& space, const Standing& standing);

/// What would gain over the default if requests of other lengths were the same work, beyond three
/// deviations of one measurement; of several the largest gain. Null: nothing.
const Standing* gains_by_other_work(const Problem& problem, const Standings& standings,
                                    const Standing& base);

/// The configuration for whose other lengths a study is inconclusive; null: none. `chosen`: what
/// would be recommended. Where that is the default, one that only seems to gain. Else the chosen
/// one itself, if its answers have another length, it may compute otherwise and nobody compared the
/// answers: a broken quantization looks like that.
const Standing* doubted_for_work(const Problem& problem, const Standings& standings,
                                 const Standing& chosen, const Standing* base);

/// Of the configurations that nothing but limits keeps from passing, the one whose most broken
/// limit is broken least. Nothing: there is none.
std::optional<Closest> closest_to_passing(const Problem& problem, const Standings& standings);

/// The gain of one of the configurations that were tried over another one, in goal k: what every
/// output states.
///
/// Of a problem that is confirmed, that of the rounds after the search (`PairedComparison`), of
/// `level`; before them, without an interval. Of a table: its figures, by the noise of all results
/// and the assumed one. What looks best of thirty measurements is the luckiest of them too, so a
/// plain interval would find a gain in a quarter of the studies in which there is none
/// (tests/search/aa_test.cpp). Two intervals account for that, and the one that says more counts:
/// that of all measurements, held together with those of all passing configurations and goals; and
/// that of the measurements after each one's first, for which nothing was picked, held together
/// with those of all that were measured again. Each errs in one study of forty.
Gain judged_gain(const Problem& problem, const Standings& standings, const Standing& standing,
                 const Standing& base, std::size_t k = 0, double level = verdict_level);

/// Whether the means of a configuration gain a share over another one's in any goal.
inline bool seems_to_gain(const Problem& problem, const Standing& one, const Standing& base,
                          double share) {
    for (std::size_t k = 0; k < one.goals.size(); ++k)
        if (gain_between(problem.objective.goals[k], one.goals[k].estimate, base.goals[k].estimate)
                .value >= share)
            return true;
    return false;
}

/// Rounds of the confirmation in which a configuration was measured beside the default, or at all
/// where that does not pass (`base` null).
inline std::size_t rounds_of(const Problem& problem, const Standings& standings,
                             const Standing& standing, const Standing* base) {
    return PairedComparison(problem, standings, 0, base != nullptr ? *base : standing)
        .rounds(standing);
}

}  // namespace servetune
