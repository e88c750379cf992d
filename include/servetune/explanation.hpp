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

/// One level of a parameter against its default, the other parameters as in a sample of the space.
struct Effect {
    std::string parameter;
    Value level;
    CredibleInterval gain{};   ///< share: 0.02 is 2 % better
    std::size_t pairs = 0;     ///< configurations compared, with the level and with the default
    std::size_t measured = 0;  ///< configurations with a number that have the level
    /// why none of those that were tried passes, while others do: it has no gain then; empty: it
    /// has
    std::string refused{};

    [[nodiscard]] bool known() const { return measured > 0 && refused.empty() && gain.known(); }
};

/// Two changes together against the sum (of logarithms) of each alone.
struct Interaction {
    std::array<std::string, 2> parameters;
    std::array<Value, 2> levels;
    CredibleInterval gain{};  ///< beyond what each gives alone
    std::size_t together =
        0;  ///< configurations with a number that have both levels, at least `least_together`
};

/// What a history says of parameters, by the models that `Bayesian` fits to it. Whatever strategy
/// asked the trials.
///
/// Effects and interactions are linear in ln(objective), so they have exact posteriors: of weights
/// w over configurations the mean w'm and the variance w'Cw, C the joint posterior covariance, of
/// each expert, mixed. They are averages over an even sample of the space (partial dependence;
/// Friedman 2001), not over the configurations that were tried, and differences within pairs that
/// differ in nothing else. An interval that holds 0 says: not known.
class Explanation {
public:
    static constexpr std::size_t most_pairs = 100;  ///< of an effect: a covariance is O(pairs^2)
    static constexpr std::size_t most_fours =
        24;  ///< of an interaction, each of four configurations
    static constexpr std::size_t most_interactions = 5;  ///< the strongest
    static constexpr std::size_t most_levels = 64;       ///< of a parameter
    static constexpr std::size_t quartiles = 5;          ///< of a real, its ends included
    static constexpr std::size_t max_drawn =
        2000;  ///< of which those count in which the parameter is active and the change allowed

    /// All must outlive it. `beliefs`: those of `bayesian`'s options.
    Explanation(const Problem& problem, std::span<const Trial> trials, const Bayesian& bayesian,
                const Beliefs& beliefs);
    ~Explanation();

    /// Throws UsageError where there is no such trial of the search.
    [[nodiscard]] TrialExplanation trial(std::uint64_t id) const;
    /// What `effects` wants.
    [[nodiscard]] EffectsFloor floor() const;
    /// By which the objective is compared, for whoever states a gain.
    [[nodiscard]] FigureScale scale() const;
    /// Of all that was told: every level of every parameter but the defaults (of more than
    /// `most_levels` an even part), in the space's order. Empty below the floor. The other
    /// parameters are at no level that is refused.
    [[nodiscard]] std::vector<Effect> effects() const;
    /// The strongest first. Of each parameter its best and its worst level but the default are
    /// looked at, of two those that were measured together.
    [[nodiscard]] std::vector<Interaction> interactions(const std::vector<Effect>& effects) const;

private:
    const Beliefs& given_beliefs_;
    std::unique_ptr<const FittedHistory> fitted_;
};

}  // namespace servetune
