// SPDX-License-Identifier: Apache-2.0
#pragma once

// What can be said of the Bayesian strategy, without its algebra: whoever only passes options on
// does not compile Eigen.

#include "servetune/configuration.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/search/hyperparameter_search.hpp"
#include "servetune/detail/search/prior_mean.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// How a configuration that gave no number teaches the model of the objective. The model of what
/// works learns from it but for `penalty`.
enum class FailureModel {
    penalty,     ///< as the worst value seen
    classifier,  ///< not at all
    hybrid,      ///< as a bad value, the lowest tenth of those seen
};

/// As they are written in YAML.
inline constexpr std::array<std::pair<FailureModel, std::string_view>, 3> failure_models{
    {{FailureModel::penalty, "penalty"},
     {FailureModel::classifier, "classifier"},
     {FailureModel::hybrid, "hybrid"}}};

struct LearningOptions {
    /// Over five tasks with failures and noise of 1 and 10 % the classifier's regret at 40 trials
    /// was 0.2 to 6.3 points below the hybrid's (five of ten beyond two standard errors) at 1.7 to
    /// 10.6 more crashes (benchmarks/README.md). Where a crash takes as long as a
    /// measurement, take the hybrid.
    FailureModel failures = FailureModel::classifier;
    bool additive = false;  ///< an additive part in the kernel of the objective
    HyperparameterSearch search{};
    /// Of where the fits start, of what is drawn from the models, of the sample of candidates and
    /// of which of equals comes first. Two seeds of one study ask differently where what is known
    /// leaves a choice. Nothing: the study's.
    std::optional<std::uint64_t> seed{};
};

struct CandidateOptions {
    std::size_t max_listed =
        1'000'000;  ///< 24 MB and half a second for each listing of twelve parameters
    std::size_t max_believed =
        20'000;  ///< where beliefs are asked for: a cost model takes some 50 us for each
    /// with their levels: finding one anew is slow under rows that are listed one by one
    std::size_t kept_at_most = 20'000;
    std::size_t sample = 20'000;  ///< of what cannot be listed
};

struct BayesianOptions {
    /// Of the budget: the start is a share of it, and the search ends before it (`search_trials`).
    /// Nothing: those of the study (`Problem::trials`), or 30 where it has none.
    std::optional<std::size_t> trials{};
    double least_chance = 0.15;  ///< to work; below, only where nothing else is left
    double first_chance = 0.35;  ///< the same until `enough_numbers` configurations gave one
    /// The budget of risk: once more than `failing_share` of the configurations failed, only those
    /// are tried whose chance to work is at least `careful_chance`, unless nothing else is left. At
    /// 60 trials of four tasks (16 fresh seeds) 7.4 instead of 11.0 failed, and the mean regret was
    /// 3.9 instead of 5.2 %; with a chance of 0.5 nothing changed, with 0.8 regret grew.
    double careful_chance = 0.7;
    double failing_share = 0.125;
    std::size_t enough_numbers =
        5;                    ///< a model of what works needs both kinds before it may take risks
    bool per_second = false;  ///< the largest gain a second of trials, not a trial
    /// How long the result will serve on a machine like this one: the search ends once a trial is
    /// expected to gain less of it than the trial takes. Nothing: it ends with its budget. One goal
    /// only.
    std::optional<double> serves_seconds{};
    bool own_defaults =
        true;  ///< the start tries each engine at its own defaults first (start_design.hpp)
    std::size_t explore_every =
        12;  ///< one ask in so many learns where the model knows least; 0: never
    /// Once so many new configurations in a row gained less than `Decision::min_gain`, every other
    /// one is far from all that was tried; 0: never. One goal only: with several, nearly every
    /// trial gains a little in one of them.
    std::size_t patience = 8;
    std::size_t rescored = 256;  ///< of the ranking's best, scored by all experts in double
    /// Of a space that is only sampled: from so many of the best at once steps of one parameter are
    /// tried. A place of vLLM's whole space has some 190 neighbours, and each costs O(n^2): of more
    /// than `learning.search.many` told configurations fewer places are enough.
    std::size_t places = 8;
    std::size_t places_of_many = 2;
    LearningOptions learning{};
    CandidateOptions candidates{};
    Beliefs beliefs{};
    /// What a person or a program suggests, feasible; null: nothing. At most three of ten trials
    /// follow it, the best by the models first; what they believe to fail or to be worse than the
    /// best waits until they believe otherwise. Whoever holds the list may add to it between asks.
    std::shared_ptr<const std::vector<Configuration>> suggestions{};

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

}  // namespace servetune
