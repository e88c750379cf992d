// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/bayesian.hpp"
#include "servetune/search_space.hpp"
#include "servetune/standings.hpp"
#include "servetune/trial.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

class FittedHistory;

/// A number and its 95 % interval; of effects all intervals of a list hold together with 95 %
/// (`as_gain`).
struct CredibleInterval {
    double value = 0;
    double low = 0;
    double high = 0;

    /// Whether it says on which side of 0 the truth is.
    [[nodiscard]] bool known() const { return low > 0 || high < 0; }
};

/// Two levels are said to act together only where so many configurations with a number have both:
/// what one alone gave may be the work of whatever else it has changed, and a model without any
/// tells its prior.
inline constexpr std::size_t least_together = 2;

/// How many configurations with a number it takes before effects of parameters are told: main
/// effects alone have as many unknowns as parameters and one for the level, and one more is the
/// least that can contradict them. Below it an interval would be the prior's alone.
struct EffectsFloor {
    std::size_t measured = 0;  ///< configurations with a number
    std::size_t varied = 0;    ///< parameters that have more than one level

    static EffectsFloor of(const SearchSpace& space, const Standings& standings) {
        EffectsFloor result;
        for (const Standing& standing : standings.all())
            result.measured += standing.measured() == 0 ? 0 : 1;
        for (const Parameter& parameter : space.parameters())
            result.varied += parameter.continuous() || parameter.level_count() > 1 ? 1 : 0;
        return result;
    }
    [[nodiscard]] std::size_t needed() const { return varied + 2; }
    [[nodiscard]] bool enough() const { return measured >= needed(); }
};

/// What the models expected of a configuration, by all that had been told when it was asked.
struct Expectation {
    /// in the objective's unit, without the noise of a measurement; nothing: nothing was measured
    std::optional<CredibleInterval> objective{};
    double deviation = 0;          ///< that of a normal with an interval as wide, in its unit
    std::optional<double> best{};  ///< the best posterior mean then; nothing: nothing had passed
    /// expected improvement over `best`, as a share of it; nothing as above, or of several goals
    std::optional<double> expected_gain{};
    FigureScale scale{};       ///< by which the objective was compared then
    double chance_works = 1;   ///< to give a number
    double chance_limits = 1;  ///< to keep all limits
    std::optional<double>
        seconds{};             ///< what the trial takes, start to end; nothing: not known of any
    double belief_weight = 0;  ///< of the experts that use knowledge, 0 to 1
};

/// One trial: why it was asked, what was expected and what came of it.
struct TrialExplanation {
    const Trial* trial = nullptr;
    std::size_t told_before = 0;            ///< trials that the models had learned from
    std::optional<Expectation> expected{};  ///< nothing where nothing had been told
    std::optional<double> measured{};       ///< the objective
};

/// One level of a parameter against the average of the parameter's levels that are not refused.
struct MainEffect {
    std::string parameter;
    Value level;
    CredibleInterval gain{};   ///< share: 0.02 is 2 % better
    std::size_t measured = 0;  ///< configurations with a number that have the level
    /// why none of those that were tried passes, while others do: it has no gain then; empty: it
    /// has
    std::string refused{};

    [[nodiscard]] bool known() const { return measured > 0 && refused.empty() && gain.known(); }
};

/// Two parameters that do together what neither does alone.
struct PairEffect {
    std::array<std::string, 2> parameters;
    double share =
        0;  ///< of the variance of the objective over the space, beyond what both give alone
    std::array<Value, 2> levels;  ///< where that is most, of those that were measured together
    CredibleInterval gain{};      ///< there, beyond what both levels give alone
    std::size_t together =
        0;  ///< configurations with a number that have both, at least `least_together`
};

/// What parameters do over the space as a whole.
///
/// The decomposition of variance of Hutter, Hoos, Leyton-Brown (ICML 2014), of ln(objective), over
/// an even sample of the space: a main effect is the average with the parameter set to a level,
/// less the average over its levels in the same configurations; an interaction is what the average
/// of two levels together has beyond both main effects. Only feasible configurations without a
/// refused level enter. Values are posterior means; intervals are from the posterior covariance of
/// such averages, exact but for two things: they are of averages over a few hundred configurations,
/// no narrower than those over all by expectation, and what a model cannot say is not in them.
struct Effects {
    EffectsFloor floor{};            ///< below it nothing is said
    std::vector<MainEffect> main{};  ///< in the space's order
    /// the three strongest, the strongest first; empty unless something is learned
    std::vector<PairEffect> pairs{};

    /// Whether any main effect is known.
    [[nodiscard]] bool learned() const {
        return std::any_of(main.begin(), main.end(),
                           [](const MainEffect& one) { return one.known(); });
    }
    /// How many levels of a parameter `main` does not have: of many an even part is looked at, and
    /// some have nothing to be compared with.
    [[nodiscard]] std::size_t left_out(const Parameter& parameter) const;
};

/// What further trials would bring over a configuration, by the models.
struct FurtherGain {
    std::size_t trials = 0;
    CredibleInterval gain{};  ///< mean, and 2.5 % and 97.5 % of the worlds
    double chance_changed =
        0;  ///< that something else is taken for better by what a change has to gain
    std::size_t untried = 0;  ///< configurations that the trials were chosen from
};

/// What a history says of parameters, of its trials and of what nobody measured, by the models that
/// `Bayesian` fits to it: fitted once, when they are first asked for. Whatever strategy asked the
/// trials. An interval that holds 0 says: not known.
class Explanation {
public:
    /// `problem` must outlive it.
    Explanation(const Problem& problem, std::span<const Trial> trials, const Bayesian& bayesian);
    ~Explanation();

    /// Why it was asked, and what was expected. Throws UsageError where there is no such trial of
    /// the search.
    [[nodiscard]] TrialExplanation trial(std::uint64_t id) const;
    /// Below it nothing but `trial` and `effects` may be asked.
    [[nodiscard]] EffectsFloor floor() const;
    [[nodiscard]] Effects effects() const;
    /// The best of so many further trials against `from`, in worlds drawn from the posterior.
    ///
    /// A world is a joint draw of ln(objective) of `from` and of the untried configurations with
    /// the largest expected improvement, each of which works and keeps the limits with its chance.
    /// A trial measures what is best in another draw (Thompson sampling; Kandasamy et al., AISTATS
    /// 2018), all chosen at once, with the noise of four measurements: one in the search and three
    /// rounds after it. The one that then looks best by the posterior of its figure alone is taken
    /// where that gains `least`. The gain of a world is what this one truly has, else 0.
    [[nodiscard]] FurtherGain further(const Configuration& from, std::size_t trials,
                                      double least) const;

private:
    std::unique_ptr<const FittedHistory> fitted_;
};

}  // namespace servetune
