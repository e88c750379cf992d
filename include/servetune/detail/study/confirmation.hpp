// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/study/confirmation_rounds.hpp"
#include "servetune/recommendation.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

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
    [[nodiscard]] std::vector<Configuration> lineup(const Standings& standings) const;

    const Problem& problem_;
    std::span<const Trial> history_;
    std::size_t most_;
};

}  // namespace servetune
