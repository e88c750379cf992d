// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/student.hpp"
#include "servetune/detail/trial/standings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

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
inline constexpr std::array<std::size_t, 3> looks{least_rounds, 6, 12};

/// One round: each configuration once, in the order in which they were asked.
using ConfirmationRound = std::vector<const Trial*>;

/// A round ends where a configuration comes a second time, or where the search went on. `trials`:
/// by id.
std::vector<ConfirmationRound> confirmation_rounds(std::span<const Trial* const> trials);

/// Figures of one goal, round by round: how much better each configuration was than the base in
/// that round.
class PairedFigures {
public:
    /// Of goal k.
    PairedFigures(const Standings& standings, const Goal& goal, std::size_t k, const Standing& base)
        : standings_(standings),
          goal_(goal),
          k_(k),
          base_(base),
          rounds_(confirmation_rounds(standings.trials())) {}

    /// Rounds in which both were measured.
    [[nodiscard]] std::size_t rounds(const Standing& candidate) const {
        return gains(candidate).size();
    }

    /// The gain of a configuration over the base with its 95 % interval, by Student's t from how
    /// these rounds spread. `proven` is the lower end of the 99 % interval: a verdict is looked for
    /// several times and about several configurations, so it has to be surer than what it states.
    /// Before two rounds nothing is known of the spread.
    [[nodiscard]] Gain gain(const Standing& candidate) const;

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

}  // namespace servetune
