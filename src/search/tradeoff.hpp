// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_pool.hpp"
#include "candidate_score.hpp"
#include "evidence.hpp"
#include "goal_data.hpp"
#include "hypervolume.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// A second goal beside the leading one, with a Gaussian process of its own over ln(value), and the
/// front of both. What a point is worth is what it adds to the front's hypervolume; both goals
/// standardised, more is better, and taken as independent.
///
/// - The front: posterior means of the evidence that pass, no number that was merely seen.
/// - The reference point lies below the front's worst in each goal, by a tenth of the front's range
///   in it, at least by `least_depth`: a front of one point has no range, and nothing that trades
///   one goal for another would be worth anything. On a made-up task (1344 configurations, 30
///   trials, 24 seeds, 3 % noise) a least depth of 0, 0.1, 0.5, 1 and 2 found 0.924, 0.926, 0.939,
///   0.951 and 0.953 of the area under the true front.
/// - Knowledge (PriorMean) is of the leading goal; the other one learns from trials.
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
    /// `noise_cv`: of one measurement of the second goal. `geometry` must outlive it.
    Tradeoff(const Problem& problem, const std::vector<ConfigurationEvidence>& evidence,
             const Leading& leading, const LevelGeometry& geometry, double noise_cv,
             std::uint64_t seed);

    /// Puts what the front is expected to gain in the place of the leading goal's improvement, by
    /// the mixtures of both goals. Something must pass.
    void score(const std::vector<EncodedPoint>& points, std::vector<CandidateScore>& scores) const;
    /// The same of a pool in single precision, by the weightiest expert of each goal; `leading`:
    /// that of the leading one. `explore`: how uncertain both goals are together; 100 less where
    /// even a deviation better in each of them would add nothing.
    void rank(const PoolPredictions& leading, const LevelGeometry& geometry,
              const CandidatePool& pool, bool explore, Eigen::VectorXf& result) const;
    /// The entry whose measurement once more is expected to change the front most, and ln of by how
    /// much. `noise_variance`: of the leading goal.
    [[nodiscard]] std::optional<std::pair<std::size_t, double>> best_replicate(
        const std::vector<ConfigurationEvidence>& evidence, double noise_variance) const;

private:
    using BothGoals = std::array<std::vector<Prediction>, 2>;

    [[nodiscard]] std::vector<Prediction> of_second(const std::vector<EncodedPoint>& points) const;
    [[nodiscard]] static Surrogate learned(const Goal& goal,
                                           const std::vector<ConfigurationEvidence>& evidence,
                                           const LevelGeometry& geometry, double noise_cv,
                                           std::uint64_t seed);
    /// Means of the passing evidence but one.
    [[nodiscard]] static std::vector<Staircase::Point> passing_means(
        const std::vector<ConfigurationEvidence>& evidence, const BothGoals& goals,
        std::size_t without);
    static constexpr std::size_t none = std::size_t(-1);

    Surrogate second_;
    BothGoals at_evidence_{};
    Staircase::Point reference_{};
    std::optional<Staircase> front_{};  ///< by the mixtures; nothing where nothing passes
    std::optional<Staircase> front_by_weightiest_{};  ///< by the weightiest expert of each goal
};

}  // namespace servetune
