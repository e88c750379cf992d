// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_pool.hpp"
#include "candidate_score.hpp"
#include "chebyshev.hpp"
#include "evidence.hpp"
#include "goal_data.hpp"
#include "hypervolume.hpp"
#include "output_scale.hpp"
#include "base/dominance.hpp"
#include "base/present.hpp"
#include "servetune/detail/search/bayesian_options.hpp"
#include "surrogate.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace servetune {

/// What a point in several goals is worth beside what is known: with two goals what it adds to the
/// hypervolume, with more by how much it beats the best for one set of weights. All goals
/// standardised, more is better; goals of a point are taken as independent.
class FrontValue {
public:
    /// `means`: of what passes, one or more, a point each; `reference` below the front, `weights`
    /// positive (for more than two goals).
    FrontValue(const std::vector<std::vector<double>>& means, const std::vector<double>& reference,
               const std::vector<double>& weights);

    /// ln of what a measurement is expected to add.
    [[nodiscard]] double log_expected_improvement(std::span<const Prediction> goals) const {
        return staircase_ ? staircase_->log_expected_improvement(goals[0], goals[1])
                          : present(scalar_).log_expected_improvement(goals, best_);
    }
    /// What a point adds that is known.
    [[nodiscard]] double improvement(std::span<const double> point) const {
        return staircase_ ? staircase_->improvement({point[0], point[1]})
                          : std::max(present(scalar_).value(point) - best_, 0.0);
    }

private:
    std::optional<Staircase> staircase_{};
    std::optional<Chebyshev> scalar_{};
    double best_ = 0;
};

/// The goals beside the leading one, each with a Gaussian process of its own over ln(value), and
/// the front of all.
///
/// - The front: posterior means of the evidence that pass, no number that was merely seen.
/// - The reference point lies below the front's worst in each goal, by a tenth of the front's range
///   in it, at least by `least_depth`: a front of one point has no range, and nothing that trades
///   one goal for another would be worth anything. On a made-up task (1344 configurations, 30
///   trials, 24 seeds, 3 % noise) a least depth of 0, 0.1, 0.5, 1 and 2 found 0.924, 0.926, 0.939,
///   0.951 and 0.953 of the area under the true front.
/// - Weights, for three goals and more, are drawn anew for each number of asked trials, so that
///   asks in a row, and beside each other, look at other parts of the front. They depend on the
///   history alone.
/// - Knowledge (PriorMean) is of the leading goal; these learn from trials.
class Tradeoff {
public:
    static constexpr double depth = 0.1;
    static constexpr double least_depth =
        1;  ///< spreads of the goal: what a study of one goal takes as a usual difference

    /// The leading goal's process, and what it takes as believed of each configuration of the
    /// evidence.
    struct Leading {
        const Surrogate& process;
        Eigen::MatrixXd beliefs;
    };
    /// `noise_cv`: of one measurement, each goal's, the leading one first. `geometry` must outlive
    /// it.
    Tradeoff(const Problem& problem, const std::vector<ConfigurationEvidence>& evidence,
             const Leading& leading, const LevelGeometry& geometry,
             const std::vector<double>& noise_cv, const LearningOptions& options,
             std::uint64_t seed);

    /// Entries of the evidence whose posterior means no other passing one beats in all goals
    /// together, in the evidence's order.
    [[nodiscard]] const std::vector<std::size_t>& front() const { return front_; }
    /// Puts what the front is expected to gain in the place of the leading goal's improvement, by
    /// the mixtures of all goals. Something must pass.
    void score(const std::vector<EncodedPoint>& points, std::vector<CandidateScore>& scores) const;
    /// The same of a pool in single precision, by the weightiest expert of each goal; `leading`:
    /// that of the leading one. `explore`: how uncertain all goals are together; 100 less where
    /// even a deviation better in each of them would add nothing.
    void rank(const PoolPredictions& leading, const LevelGeometry& geometry,
              const CandidatePool& pool, bool explore, Eigen::VectorXf& result) const;
    /// The entry whose measurement once more is expected to change the front most, and ln of by how
    /// much. `noise_variance`: of the leading goal.
    [[nodiscard]] std::optional<std::pair<std::size_t, double>> best_replicate(
        const std::vector<ConfigurationEvidence>& evidence, double noise_variance) const;

private:
    struct GoalModel {
        OutputScale scale;
        std::unique_ptr<Surrogate> process;
    };
    [[nodiscard]] std::vector<std::vector<Prediction>> further(
        const std::vector<EncodedPoint>& points) const;
    [[nodiscard]] static GoalModel learned(const Goal& goal, std::size_t k,
                                           const std::vector<ConfigurationEvidence>& evidence,
                                           const LevelGeometry& geometry, double noise_cv,
                                           const LearningOptions& options, std::uint64_t seed);
    /// Means of the passing evidence but one; `goals`: a list a goal.
    [[nodiscard]] static std::vector<std::vector<double>> passing_means(
        const std::vector<ConfigurationEvidence>& evidence,
        const std::vector<std::vector<Prediction>>& goals, std::size_t without);
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::vector<GoalModel> models_{};
    std::vector<std::vector<Prediction>> at_evidence_{};  ///< a list a goal, the leading one first
    std::vector<std::size_t> front_{};
    std::vector<double> weights_{};
    std::vector<double> reference_{};
    std::optional<FrontValue> value_{};  ///< by the mixtures; nothing where nothing passes
    std::optional<FrontValue> value_by_weightiest_{};  ///< by the weightiest expert of each goal
};

}  // namespace servetune
