// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/bayesian.hpp"
#include "servetune/explanation.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace servetune {

class FittedHistory;
/// The trials of a search and the models of them, fitted once for all that is asked of them. What
/// it is made from must outlive it. `beliefs`: those of `bayesian`'s options.
[[nodiscard]] std::shared_ptr<const FittedHistory> fitted_history(const Problem& problem,
                                                                  std::span<const Trial> trials,
                                                                  const Bayesian& bayesian,
                                                                  const Beliefs& beliefs);

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

/// What parameters do over the space as a whole, by the models that `Bayesian` fits to a history,
/// whatever strategy asked it (`Explanation` compares with the default instead).
///
/// The decomposition of variance of Hutter, Hoos, Leyton-Brown (ICML 2014), of ln(objective), over
/// an even sample of the space: a main effect is the average with the parameter set to a level,
/// less the average over its levels in the same configurations; an interaction is what the average
/// of two levels together has beyond both main effects. Only feasible configurations without a
/// refused level enter. Values
/// are posterior means; intervals are from the posterior covariance of such averages, exact but for
/// two things: they are of averages over `most_covaried` configurations at most, no narrower than
/// those over all by expectation, and what a model cannot say is not in them. Below the floor
/// nothing is said.
class Effects {
public:
    static constexpr std::size_t max_drawn = 2000;  ///< for the variance over the space
    static constexpr std::size_t most_levels =
        8;  ///< of an ordered parameter: the default and others spread evenly
    static constexpr std::size_t most_choices =
        64;  ///< the same of one without an order: what one level does says nothing of another
    static constexpr std::size_t most_pair_levels = 5;  ///< the same of each of a pair
    /// configurations for all main effects, and again for all pairs: half a second each
    static constexpr std::size_t most_points = 25'000;
    static constexpr std::size_t most_believed =
        2'000;  ///< the same where beliefs are asked for: a cost model takes some 0.2 ms for each
    static constexpr std::size_t most_covaried =
        400;  ///< of one interval: its covariance is O(points^2)
    /// of a pair: less comes of rounding, and of grids in which rules leave nothing to compare
    static constexpr double least_share = 0.001;
    static constexpr std::size_t most_pairs = 3;  ///< shown: the strongest

    explicit Effects(const FittedHistory& fitted);

    [[nodiscard]] const EffectsFloor& floor() const { return floor_; }
    /// Whether any main effect is known.
    [[nodiscard]] bool learned() const {
        return std::any_of(main_.begin(), main_.end(),
                           [](const MainEffect& one) { return one.known(); });
    }
    /// In the space's order; empty unless there is enough.
    [[nodiscard]] const std::vector<MainEffect>& main() const { return main_; }
    /// The strongest first; empty unless something is learned.
    [[nodiscard]] const std::vector<PairEffect>& pairs() const { return pairs_; }
    /// How many levels of a parameter `main` does not have: of many an even part is looked at, and
    /// some have nothing to be compared with.
    [[nodiscard]] std::size_t left_out(const Parameter& parameter) const;

private:
    struct Parts;

    void find_main(const Parts& parts);
    void find_pairs(const Parts& parts);

    EffectsFloor floor_{};
    std::vector<MainEffect> main_{};
    std::vector<PairEffect> pairs_{};
};

}  // namespace servetune
