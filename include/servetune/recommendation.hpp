// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/study/closest.hpp"
#include "servetune/detail/study/confirmation_rounds.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// The verdict of a study, the same in every report.
enum class Conclusion {
    recommended,  ///< serve `recommended`; there is a gain over the default, unless the default itself does not pass
    keep_default,  ///< nothing that was measured is worth a change
    inconclusive,  ///< what the verdict would rest on cannot be relied on (`Doubt`): keep the default and measure again
    nothing_passes
};

inline constexpr std::array<std::pair<Conclusion, std::string_view>, 4> conclusions{
    {{Conclusion::recommended, "recommended"},
     {Conclusion::keep_default, "keep_default"},
     {Conclusion::inconclusive, "inconclusive"},
     {Conclusion::nothing_passes, "nothing_passes"}}};

/// Why a study is inconclusive.
enum class Doubt {
    none,
    default_unsound,  ///< the audit refuses all measurements of the default, or they failed for reasons that were not its own
    default_disturbed,  ///< something else used the machine in at least half of the default's measurements
    winner_disturbed,  ///< the same of the configuration that would be recommended
    most_unreliable,   ///< at least three quarters of all results are disturbed or unsound
    not_confirmed,     ///< what looks best was not measured again in three rounds with the default
    never_cold,        ///< what would be recommended was only measured with weights of a cache
    unequal_work  ///< what would be recommended had requests of other lengths than the default (`Recommendation::unequal`)
};

/// One of several answers to several goals: none that passes is better in one of them without being
/// worse in another, by the means.
struct FrontPoint {
    Configuration configuration;
    std::vector<Estimate> estimates;  ///< of each goal, the leading one first
};

/// What a history says should be served, and how sure that is.
struct Recommendation {
    Configuration default_configuration;
    bool default_passes =
        false;  ///< otherwise there is nothing to compare with, and `gain` means nothing
    bool default_unsound =
        false;  ///< it was measured, but the audit refuses what was measured: how good it is, is not known
    /// The passing configuration with the best mean, once some were confirmed of these and the
    /// default; nothing: none passes.
    std::optional<Configuration> best{};
    Configuration recommended{};  ///< the smallest command with the proven gain, or the default
    bool keep_default = true;     ///< `recommended` is the default
    Conclusion conclusion = Conclusion::nothing_passes;
    Doubt doubt = Doubt::
        none;  ///< of an inconclusive study: `recommended` is then the default, and no gain is stated
    std::optional<Configuration>
        to_confirm{};  ///< with `Doubt::never_cold`: what a cold start has to confirm
    std::optional<Configuration>
        unequal{};  ///< with `Doubt::unequal_work`: whose figure cannot be compared with the default's
    std::optional<Closest>
        closest{};  ///< where nothing passes: what comes nearest to it, and the limits that it breaks
    std::size_t results = 0;    ///< measurements of the search
    std::size_t disturbed = 0;  ///< of these: something else used the machine meanwhile
    std::size_t unsound = 0;    ///< of these: the audit refuses them
    Gain
        gain{};  ///< of `recommended` over the default, judged as the best-looking of all that were tried (`judged_gain`)
    /// How much better than `recommended` the best observed figure is, judged likewise; nothing
    /// when they are the same or nothing can be concluded.
    std::optional<Gain> given_away{};
    /// Probability that `recommended` is truly the best of all passing ones; nothing: no spread was
    /// measured.
    std::optional<double> p_best{};
    std::vector<Configuration>
        tied{};  ///< other passing ones whose 95 % interval against `recommended` holds 0
    std::vector<FrontPoint>
        front{};  ///< where there are several goals; the best in the leading one first
};

/// The gain of one of the configurations that were tried over another one, in goal k: what every
/// output states.
///
/// Of a problem that is confirmed, that of the rounds after the search (`PairedFigures`); before
/// them, without an interval. Of a table: its figures, decided by the assumed noise. What looks
/// best of thirty measurements is the luckiest of them too, so a plain interval would find a gain
/// in a quarter of the studies in which there is none (tests/search/aa_test.cpp). Two intervals
/// account for that, and the one that says more counts: that of all measurements, held together
/// with those of all passing configurations and goals; and that of the measurements after each
/// one's first, for which nothing was picked, held together with those of all that were measured
/// again. Each errs in one study of forty. What is stated of a table is the interval by its
/// measured spread, if it has any.
Gain judged_gain(const Problem& problem, const Standings& standings, const Standing& standing,
                 const Standing& base, std::size_t k = 0);

/// Rounds of the confirmation in which a configuration was measured beside the default, or at all
/// where that does not pass (`base` null).
inline std::size_t rounds_of(const Problem& problem, const Standings& standings,
                             const Standing& standing, const Standing* base) {
    return PairedFigures(standings, problem.objective.leading(), 0,
                         base != nullptr ? *base : standing)
        .rounds(standing);
}

/// The rule, for every strategy. Of the passing configurations that are worth having over the
/// default, the one with the largest proven gain wins (the best mean with several goals, with
/// `published` or where the default does not pass). Then every measured configuration replaces it
/// that only drops settings from it, loses less than is worth having and is known about as well,
/// fewest settings first. A flag whose effect is not worth having is thus never recommended. Where
/// the default's or the winner's measurements cannot be relied on, or hardly any can, the study is
/// inconclusive and the default is kept (`Doubt`; disturbed and unsound measurements with the audit
/// enforced only).
///
/// Where measuring again informs, only what was confirmed can win or replace the winner: measured
/// in three rounds or more with the default after the search (detail/study/confirmation.hpp).
/// Without any, what looks better is inconclusive.
///
/// Of several goals the leading one decides who is best; worth having is then what is worth it in
/// any of them, so that neither the default nor a smaller command replaces a configuration that is
/// as good in the leading goal and clearly better in another.
Recommendation recommend(const Problem& problem, std::span<const Trial> history);

}  // namespace servetune
