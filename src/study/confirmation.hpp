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

/// Rounds before anything is judged.
inline constexpr std::size_t least_rounds = 3;
/// Rounds after which it is judged whether more are needed. Each look may err; twice as many rounds
/// say something new.
inline constexpr std::array<std::size_t, 3> interim_analyses{least_rounds, 6, 12};

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
    PairedComparison(const Standings& standings, const Goal& goal, std::size_t k,
                     const Standing& base)
        : standings_(standings),
          goal_(goal),
          k_(k),
          base_(base),
          rounds_(confirmation_rounds(standings.trials())) {}

    /// Rounds in which both were measured.
    [[nodiscard]] std::size_t rounds(const Standing& candidate) const {
        return gains(candidate).size();
    }

    /// The gain of a configuration over the base with its interval, by Student's t from how these
    /// rounds spread. Before two rounds nothing is known of the spread.
    [[nodiscard]] Gain gain(const Standing& candidate, double level = verdict_level) const;

private:
    [[nodiscard]] std::optional<double> figure(const Standing& standing,
                                               const ConfirmationRound& round) const {
        for (const Trial* trial : round)
            if (trial->configuration == standing.configuration)
                return standings_.as_measured(standing, trial->id, k_);
        return std::nullopt;
    }
    [[nodiscard]] std::optional<double> gain_in(const Standing& candidate,
                                                const ConfirmationRound& round) const {
        const auto mine = figure(candidate, round);
        const auto its = figure(base_, round);
        if (!mine || !its) return std::nullopt;
        return std::log1p(goal_.gain(*mine, *its));
    }
    [[nodiscard]] std::vector<double> gains(const Standing& candidate) const {
        std::vector<double> result;
        for (const ConfirmationRound& round : rounds_)
            if (const auto gain = gain_in(candidate, round)) result.push_back(*gain);
        return result;
    }
    /// The variance of one measurement within a round, and its degrees of freedom: of all that were
    /// measured beside the base, each with an effect of its own and of its round (least squares).
    /// Where the candidate and the base alone spread much more than all together, theirs counts.
    [[nodiscard]] std::pair<double, std::size_t> spread(const std::vector<double>& mine) const;
    struct Cell {
        std::size_t configuration;
        std::size_t round;
        double gain;
    };
    /// What is left of the cells when the effects of configurations and rounds are taken off in
    /// turn.
    static Spread spread_of(std::vector<Cell> cells);

    const Standings& standings_;
    Goal goal_;
    std::size_t k_;
    const Standing& base_;
    std::vector<ConfirmationRound> rounds_;
};

/// Trials of a budget that are kept for the confirmation: three in ten, at least three rounds of
/// two configurations and at most six; from 23 trials on at least three rounds of three. 0 of a
/// budget that is too small for both.
inline std::size_t confirmation_reserve(std::size_t trials) {
    constexpr std::size_t of_two = 2 * least_rounds;
    constexpr std::size_t of_three = 3 * least_rounds;
    constexpr std::size_t searched = 14;  // before three rounds of three
    if (trials < of_two + 2) return 0;
    return std::clamp(trials - std::min(trials, searched), of_two,
                      std::clamp(trials / 10 * 3, of_three, 2 * of_two));
}

/// Trials of a budget that the search may take.
inline std::size_t search_trials(const Problem& problem, std::size_t trials) {
    return problem.is_confirmed() ? trials - confirmation_reserve(trials) : trials;
}

/// What is measured after the search, of what is told: the finalists and the default in rounds,
/// forwards and backwards in turn, so that a machine that drifts favours none.
///
/// The finalist is the best mean; beside it, or in its place where trials are few, the smallest
/// command that drops settings from it and seems to lose nothing; or, where there are trials for
/// three rounds of three and not for many of two, the second best: two finalists say more of the
/// spread then. It is looked at after 3, 6 and 12 rounds: once a gain is proven, or is proven to be
/// less than `min_gain`, it is settled. What is settled for the worse, or fails now, makes room for
/// what looks best of the others. A pure function of the history and of what is left.
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
        return std::any_of(round.begin(), round.end(), [&](const Trial* trial) {
            return trial->configuration == configuration;
        });
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
