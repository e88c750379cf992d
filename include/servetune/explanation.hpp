// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/bayesian.hpp"
#include "servetune/detail/search/effects_floor.hpp"
#include "servetune/detail/search/expectation.hpp"

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

class PendingAwareModel;
class LevelGeometry;
struct Prediction;

/// One level of a parameter against its default, the other parameters as in a sample of the space.
struct Effect {
    std::string parameter;
    Value level;
    CredibleInterval gain{};   ///< share: 0.02 is 2 % better
    std::size_t pairs = 0;     ///< configurations compared, with the level and with the default
    std::size_t measured = 0;  ///< configurations with a number that have the level
    std::string
        refused{};  ///< why none of those that were tried passes, while others do: it has no gain then; empty: it has

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
    [[nodiscard]] EffectsFloor floor() const {
        return EffectsFloor::of(problem_.space, {trials_, problem_.objective, problem_.decision});
    }
    /// By which the objective is compared, for whoever states a gain.
    [[nodiscard]] FigureScale scale() const {
        return Standings(trials_, problem_.objective, problem_.decision,
                         problem_.space.default_configuration())
            .scale();
    }
    /// Of all that was told: every level of every parameter but the defaults (of more than
    /// `most_levels` an even part), in the space's order. Empty below the floor. The other
    /// parameters are at no level that is refused.
    [[nodiscard]] std::vector<Effect> effects() const;
    /// The strongest first. Of each parameter its best and its worst level but the default are
    /// looked at, of two those that were measured together.
    [[nodiscard]] std::vector<Interaction> interactions(const std::vector<Effect>& effects) const;

private:
    struct Contrast;
    [[nodiscard]] std::vector<Trial> before(const Trial& asked) const;
    [[nodiscard]] std::vector<Configuration> sample() const;
    using Changes = std::vector<std::pair<Assignment, double>>;
    [[nodiscard]] Contrast contrast(const std::vector<Configuration>& sample,
                                    const Changes& changes, std::size_t most) const;
    [[nodiscard]] static double mean(const PendingAwareModel& model, const Contrast& contrast);
    [[nodiscard]] Prediction posterior(const PendingAwareModel& model,
                                       const Contrast& contrast) const;
    [[nodiscard]] std::optional<PendingAwareModel> model()
        const;  ///< of all; nothing below the floor

    const Problem& problem_;
    std::vector<Trial> trials_;
    const Bayesian& bayesian_;
    const Beliefs& given_beliefs_;
    const Beliefs beliefs_;  ///< fitted to all trials
    std::unique_ptr<const LevelGeometry> geometry_;
};

}  // namespace servetune
