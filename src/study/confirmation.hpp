// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/standings.hpp"
#include "servetune/strategy.hpp"

namespace servetune {

// What the measurements say that were made after the search, of a few configurations and the
// default in turn. None was picked for them, and what the machine did meanwhile, it did to all of a
// round.

inline bool confirms(const Trial& trial) {
    return trial.of_search() && trial.purpose == Purpose::confirm;
}

/// Rounds from which on what they measured decides alone.
inline constexpr std::size_t least_rounds = 3;
/// Rounds after which it is judged whether more are needed. Each look may err; twice as many rounds
/// say something new. Those of fewer than three rounds rest on what is assumed.
inline constexpr std::array<std::size_t, 5> interim_analyses{1, 2, least_rounds, 6, 12};

/// Of the interval that decides: a verdict is looked for several times and about several
/// configurations.
inline constexpr double verdict_level = 0.99;

/// One round: each configuration once, in the order in which they were asked.
using ConfirmationRound = std::vector<const Trial*>;

/// A round ends where a configuration comes a second time, or where the search went on. `trials`:
/// by id.
std::vector<ConfirmationRound> confirmation_rounds(std::span<const Trial* const> trials);

/// Figures of one goal, round by round: how much better each configuration was than the base in
/// that round.
class PairedComparison {
public:
    /// Of goal k.
    PairedComparison(const Problem& problem, const Standings& standings, std::size_t k,
                     const Standing& base)
        : problem_(problem),
          standings_(standings),
          k_(k),
          base_(base),
          rounds_(confirmation_rounds(standings.trials())) {}

    /// Rounds in which both were measured.
    [[nodiscard]] std::size_t rounds(const Standing& candidate) const {
        return gains(candidate).size();
    }

    /// The gain of a configuration over the base with its interval, by Student's t.
    ///
    /// What the mean is off by is known from how the rounds spread and from what is assumed of a
    /// round, which weighs five degrees of freedom: then no more is believed than both the rounds
    /// and the search say. From three rounds on it is also known from the rounds alone, and the
    /// narrower end counts. In fewer rounds the search's gain is one more that says how gains
    /// spread, and figures that came again to the last digit have no noise (`is_exact`).
    [[nodiscard]] Gain gain(const Standing& candidate, double level = verdict_level) const;

    /// ln of a figure over the base's, turned so that more is better: in a round, or (null) of the
    /// means of the search.
    [[nodiscard]] std::optional<double> gain_in(const Standing& candidate,
                                                const ConfirmationRound* round = nullptr) const;
    /// What is assumed of how the gains of so many rounds spread: by noise, and by what the machine
    /// does within a round.
    [[nodiscard]] Spread assumed(std::size_t rounds) const;

private:
    [[nodiscard]] std::vector<double> gains(const Standing& candidate) const;
    /// Gains over the base in the search, in order, and that of the base: 0.
    [[nodiscard]] std::vector<double> searched() const;
    /// Whether a gain is more than five of the smallest steps between figures of the search: a
    /// count comes again for all its noise.
    [[nodiscard]] bool is_exact(double gain) const;

    const Problem& problem_;
    const Standings& standings_;
    std::size_t k_;
    const Standing& base_;
    std::vector<ConfirmationRound> rounds_;
};

/// Rounds in which what looks best in the search is expected to be proven to gain: 1 to 3, or 12.
std::size_t rounds_needed(const Problem& problem, const Standings& standings);

/// Trials of a budget that are kept for the confirmation, in rounds of two: as many as the gain
/// needs that the search has found (`rounds_needed`). At most six rounds and three trials in ten,
/// or three rounds where that is less; at least one round, from 20 trials on two, from 30 on three.
/// A budget of fewer than twelve keeps one round, of fewer than eight none.
inline std::size_t confirmation_reserve(std::size_t trials,
                                        std::size_t needed = interim_analyses.back()) {
    constexpr std::size_t least = 8, for_three = 12, most = 6, enough = 100;
    if (trials < for_three) return trials < least ? 0 : 2;
    const std::size_t kept = std::clamp(3 * std::min(trials, enough) / 20, least_rounds, most);
    return 2 * std::clamp(needed, std::clamp<std::size_t>(trials / 10, 1, least_rounds), kept);
}

/// Trials of a budget that the search may take.
inline std::size_t search_trials(const Problem& problem, std::size_t trials,
                                 std::size_t needed = interim_analyses.back()) {
    return problem.is_confirmed() ? trials - confirmation_reserve(trials, needed) : trials;
}

/// What is measured after the search, of what is told: a finalist and the default in rounds.
///
/// The finalist is the best mean; beside it, or in its place where trials are few, the smallest
/// command that drops settings from it and seems to lose nothing. It is looked at after 1, 2, 3, 6
/// and 12 rounds: once a gain is proven, or is proven to be less than `min_gain`, it is settled.
/// What is settled for the worse, or fails now, makes room for what looks best of the others. A
/// pure function of the history, the seed and what is left.
class Confirmation {
public:
    /// `most`: trials that there may be in all.
    Confirmation(const Problem& problem, std::span<const Trial> history, std::size_t most)
        : problem_(problem), history_(history), most_(most) {}

    [[nodiscard]] Answer next() const;

private:
    static Proposal propose(Configuration configuration, std::size_t round) {
        return {std::move(configuration), "to confirm: round " + std::to_string(round)};
    }
    static bool has(const ConfirmationRound& round, const Configuration& configuration) {
        return any_of(round,
                      [&](const Trial* trial) { return trial->configuration == configuration; });
    }
    /// Whether the search went on after a round: then there may be others to confirm.
    static bool searched_since(const ConfirmationRound& round, const Standings& standings) {
        return standings.trials().back()->id > round.back()->id &&
               !confirms(*standings.trials().back());
    }
    [[nodiscard]] std::vector<Configuration> next_round(const Standings& standings) const;

    const Problem& problem_;
    std::span<const Trial> history_;
    std::size_t most_;
};

}  // namespace servetune
