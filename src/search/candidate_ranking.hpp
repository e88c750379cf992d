// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_pool.hpp"
#include "candidate_score.hpp"
#include "candidates.hpp"
#include "expected_improvement.hpp"
#include "pending_aware_model.hpp"

#include <cstddef>
#include <vector>

namespace servetune {

/// Where the `most` highest of many scores are, the highest first, of equal ones the earlier. They
/// are read once; what is not above the lowest of those kept is passed over.
[[nodiscard]] std::vector<std::size_t> highest(const Eigen::VectorXf& scores, std::size_t most);

/// ln alpha of the candidates in single precision, by the weightiest expert alone: to find those
/// worth scoring. Made for what was told. Trials under way only shrink variances, so what a
/// candidate had before bounds what it has beside them, and only those that may be among the best
/// are looked at again.
class CandidateRanking {
public:
    /// `told` and `candidates` must outlive it. `least_chance`: of working; below, a candidate
    /// comes behind all others.
    CandidateRanking(const FittedModels& told, const Candidates& candidates, double least_chance);

    /// ln P(works) + sum_j ln P(limit j is kept) of all, by what was told; 1000 less where P(works)
    /// is below the least.
    [[nodiscard]] const Eigen::VectorXf& log_chances() const { return chances_; }
    /// Of all. `model`: what was told and what is under way. `explore`: ranks for the most
    /// uncertain of those that may be best (its upper half deviation reaches the incumbent)
    /// instead.
    [[nodiscard]] Eigen::VectorXf scores(const PendingAwareModel& model, bool explore) const;
    /// `highest` of the same, of one goal. `most`: at least 1.
    [[nodiscard]] std::vector<std::size_t> best(const PendingAwareModel& model, std::size_t most,
                                                bool explore) const;

private:
    /// Of an expert of the objective, or of a limit.
    [[nodiscard]] Eigen::MatrixXf regressors(const Expert& expert,
                                             std::optional<std::size_t> limit) const;
    /// By the weightiest of the experts.
    [[nodiscard]] PoolPredictions predicted(const Surrogate& objective, const CandidatePool& pool,
                                            const Eigen::MatrixXf& regressors) const;
    [[nodiscard]] Eigen::VectorXf gains(const PoolPredictions& objective, bool explore) const;
    [[nodiscard]] Eigen::VectorXf log_chances(const PoolModel& model, bool probit,
                                              const Eigen::MatrixXf& known) const;
    [[nodiscard]] Eigen::VectorXf log_works(double least_chance) const;

    const FittedModels& told_;
    const Candidates& candidates_;
    const Expert& expert_;
    Eigen::MatrixXf regressors_;  ///< of all candidates, or empty where all are ones
    PoolPredictions objective_;   ///< of what was told
    Prediction incumbent_{};
    Eigen::VectorXf chances_;   ///< ln of them all
    Eigen::VectorXf bounds_{};  ///< of what each scores beside trials under way, but for `explore`
};

}  // namespace servetune
