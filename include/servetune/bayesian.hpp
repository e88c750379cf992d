// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/search/bayesian_options.hpp"
#include "servetune/strategy.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace servetune {

class PendingAwareModel;
class LevelGeometry;
class Standings;

/// Bayesian optimization for 10 to 60 dear, noisy trials of which many may fail.
///
/// A few trials change the default here and there (start_design.hpp). Then each ask fits models to
/// all that was told (learned_model.hpp) and takes the feasible configuration with the largest
///
///     ln alpha = ln G + ln P(works) + sum_j ln P(limit j is kept)
///
/// of all there are (candidates.hpp), G being what one measurement is expected to gain
/// (`log_expected_gain`) over the best posterior mean, never over the best number seen. Measuring
/// one of the best again competes with that; the study confirms what is best after the search. With
/// `per_second` the predicted length of the trial is taken off (trial_cost.hpp). One ask in
/// `explore_every` looks where the model knows least among what may be best; after `patience`
/// configurations without a gain every other new one is far from all that was tried. A pure
/// function of the history: what is kept from ask to ask (model_cache.hpp) changes its speed only.
/// One object is asked from one thread at a time.
class Bayesian : public Strategy {
public:
    using Options = BayesianOptions;

    /// Throws UsageError where the options cannot be.
    explicit Bayesian(Options options = {});
    Bayesian(Bayesian&& other) noexcept;
    Bayesian& operator=(Bayesian&& other) noexcept;
    ~Bayesian() override;
    [[nodiscard]] std::string name() const override { return "bayesian"; }
    [[nodiscard]] const Options& options() const;
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng& rng) const override;

    /// The models that an ask after this history decides by. `geometry` must outlive them.
    /// PendingAwareModel is in search/pending_aware_model.hpp.
    [[nodiscard]] PendingAwareModel learned(const Problem& problem, const Standings& standings,
                                            const LevelGeometry& geometry) const;

private:
    class Search;  ///< src/search/bayesian.cpp
    std::unique_ptr<Search> search_;
};

}  // namespace servetune
