// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/bayesian.hpp"
#include "servetune/explanation.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace servetune {

class FittedHistory;

/// What further trials would bring over a configuration, by the models.
struct FurtherGain {
    std::size_t trials = 0;
    CredibleInterval gain{};  ///< mean, and 2.5 % and 97.5 % of the worlds
    double chance_changed =
        0;  ///< that something else is taken for better by what a change has to gain
    std::size_t untried = 0;  ///< configurations that the trials were chosen from
};

/// What the best of further trials would gain, by the models of a history. Whatever strategy asked
/// the trials.
class Outlook {
public:
    static constexpr std::size_t most_drawn = 2000;  ///< of the space; scored one by one
    static constexpr std::size_t most_joint =
        250;  ///< of these, by expected improvement: their covariance is O(n^3)
    static constexpr double runs = 4;            ///< once in the search, and three rounds after it
    static constexpr std::size_t worlds = 1000;  ///< drawn: a chance of 5 % is good to 0.7 points

    /// `fitted` must outlive it.
    explicit Outlook(const FittedHistory& fitted) : fitted_(fitted) {}

    /// Whether enough configurations have a number (`EffectsFloor`); else nothing is said.
    [[nodiscard]] bool enough() const;
    /// The best of so many further trials against `from`, in worlds drawn from the posterior.
    ///
    /// A world is a joint draw of ln(objective) of `from` and of the untried configurations with
    /// the largest expected improvement, each of which works and keeps the limits with its chance.
    /// A trial measures what is best in another draw (Thompson sampling; Kandasamy et al., AISTATS
    /// 2018), all chosen at once, with the noise of `runs` measurements. The one that then looks
    /// best by the posterior of its figure alone is taken where that gains `least`. The gain of a
    /// world is what this one truly has, else 0.
    [[nodiscard]] FurtherGain further(const Configuration& from, std::size_t trials,
                                      double least) const;

private:
    [[nodiscard]] std::vector<Configuration> untried(const Configuration& from) const;

    const FittedHistory& fitted_;
};

}  // namespace servetune
