// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/strategy.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace servetune {

struct BayesianOptions {
    /// Of the budget: the start is a share of it, and the search ends before it (`search_trials`).
    /// Nothing: those of the study (`Problem::trials`), or 30 where it has none.
    std::optional<std::size_t> trials{};
    /// How long the result will serve on a machine like this one: the search ends once a trial is
    /// expected to gain less of it than the trial takes. Nothing: it ends with its budget. One goal
    /// only.
    std::optional<double> serves_seconds{};
    /// Of where the fits start, of what is drawn from the models, of the sample of candidates and
    /// of which of equals comes first. Two seeds of one study ask differently where what is known
    /// leaves a choice. Nothing: the study's.
    std::optional<std::uint64_t> seed{};
    Beliefs beliefs{};
    /// What a person or a program suggests, feasible; null: nothing. At most three of ten trials
    /// follow it, the best by the models first; what they believe to fail or to be worse than the
    /// best waits until they believe otherwise. Whoever holds the list may add to it between asks.
    std::shared_ptr<const std::vector<Configuration>> suggestions{};

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// Bayesian optimization for 10 to 60 dear, noisy trials of which many may fail.
///
/// A few trials change the default here and there. Then each ask fits models to
/// all that was told and takes the feasible configuration with the largest
///
///     ln alpha = ln G + ln P(works) + sum_j ln P(limit j is kept)
///
/// of all there are, G being what one measurement is expected to gain
/// (`log_expected_gain`) over the best posterior mean, never over the best number seen. Measuring
/// one of the best again competes with that; the study confirms what is best after the search. One
/// ask in twelve looks where the model knows least among what may be best; after eight
/// configurations without a gain every other new one is far from all that was tried. A pure
/// function of the history: what is kept from ask to ask changes its speed only.
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

private:
    class Search;  ///< src/search/bayesian.cpp
    std::unique_ptr<Search> search_;
};

}  // namespace servetune
