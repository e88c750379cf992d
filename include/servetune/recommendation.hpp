// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/decision.hpp"
#include "servetune/trial.hpp"

#include <iosfwd>
#include <span>

namespace servetune {

class Problem;

/// A limit that a configuration breaks, by the worst of its measurements.
struct BrokenLimit {
    Limit limit;
    std::string workload{};  ///< empty: the figure of the whole outcome
    double value = 0;
    double by = 0;  ///< how far beyond the bound, as a share of the larger of both: 0 to 2

    /// The limit with the nearest bound of three digits that the value keeps.
    [[nodiscard]] Limit loosened() const;
};

/// The configuration that comes nearest to passing, where none does.
struct Closest {
    Configuration configuration;
    std::vector<BrokenLimit> broken{};  ///< the one that is broken most first
};

/// The verdict of a study, the same in every report.
enum class Conclusion {
    /// serve `recommended`; there is a gain over the default, unless the default itself does not
    /// pass
    recommended,
    keep_default,  ///< nothing that was measured is worth a change
    /// what the verdict would rest on cannot be relied on (`InconclusiveReason`): keep the default
    /// and measure again
    inconclusive,
    nothing_passes
};

inline constexpr auto conclusions =
    enum_names<Conclusion>("recommended", "keep_default", "inconclusive", "nothing_passes");

/// Why a study is inconclusive.
enum class InconclusiveReason {
    none,
    /// the audit refuses all measurements of the default, or they failed for reasons that were not
    /// its own
    default_unsound,
    /// something else used the machine in at least half of the default's measurements
    default_disturbed,
    winner_disturbed,  ///< the same of the configuration that would be recommended
    most_unreliable,   ///< at least three quarters of all results are disturbed or unsound
    /// what looks best was not measured again in three rounds with the default, and fewer do not
    /// prove that it gains
    not_confirmed,
    never_cold,  ///< what would be recommended was only measured with weights of a cache
    /// what would be recommended had requests of other lengths than the default
    /// (`Recommendation::unequal`)
    length_mismatch
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
    /// it was measured, but the audit refuses what was measured: how good it is, is not known
    bool default_unsound = false;
    /// The passing configuration with the best mean, once some were confirmed of these and the
    /// default; nothing: none passes.
    std::optional<Configuration> best{};
    Configuration recommended{};  ///< the smallest command with the proven gain, or the default
    bool keep_default = true;     ///< `recommended` is the default
    Conclusion conclusion = Conclusion::nothing_passes;
    InconclusiveReason doubt = InconclusiveReason::
        /// of an inconclusive study: `recommended` is then the default, and no gain is stated
        none;
    std::optional<Configuration>
        to_confirm{};  ///< with `InconclusiveReason::never_cold`: what a cold start has to confirm
    /// with `InconclusiveReason::length_mismatch`: whose figure cannot be compared with the
    /// default's
    std::optional<Configuration> unequal{};
    /// where nothing passes: what comes nearest to it, and the limits that it breaks
    std::optional<Closest> closest{};
    std::size_t results = 0;    ///< measurements of the search
    std::size_t unsound = 0;    ///< of these: the audit refuses them
    std::size_t disturbed = 0;  ///< of the others: something else used the machine meanwhile
    /// of `recommended` over the default, judged as the best-looking of all that were tried
    Gain gain{};
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

/// The rule, for every strategy. Of the passing configurations that are worth having over the
/// default, the one with the largest proven gain wins (the best mean with several goals, with
/// `published` or where the default does not pass). Then every measured configuration replaces it
/// that only drops settings from it, loses less than is worth having and is known about as well,
/// fewest settings first. A flag whose effect is not worth having is thus never recommended. Where
/// the default's or the winner's measurements cannot be relied on, or hardly any can, the study is
/// inconclusive and the default is kept (`InconclusiveReason`; disturbed and unsound measurements
/// with the audit enforced only).
///
/// Where measuring again informs, only what was confirmed can win or replace the winner: measured
/// with the default after the search, in three rounds or more or until its gain was proven.
/// Without any, what looks better is inconclusive.
///
/// Of several goals the leading one decides who is best; worth having is then what is worth it in
/// any of them, so that neither the default nor a smaller command replaces a configuration that is
/// as good in the leading goal and clearly better in another.
Recommendation recommend(const Problem& problem, std::span<const Trial> history);

/// Why an inconclusive study is so, in a few words.
std::string text_of(InconclusiveReason doubt);

/// A line for people: `backend = flashinfer, seqs = 512: +12.30 % over the default (99 %: +10.10 to
/// +14.60 %)`, or why the default is kept.
std::string text_of(const Recommendation& result);

std::ostream& operator<<(std::ostream& out, const Recommendation& result);

}  // namespace servetune
