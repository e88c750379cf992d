// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/acquisition/expected_improvement.hpp"
#include "servetune/acquisition/pool_posterior.hpp"
#include "servetune/strategy/candidate_score.hpp"
#include "servetune/strategy/candidates.hpp"
#include "servetune/strategy/told_models.hpp"
#include "servetune/strategy/tradeoff.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

namespace servetune {

/// Where the `most` highest of many scores are, the highest first, of equal ones the earlier. They are read once: what is not above the lowest of twice as many is passed over.
inline std::vector<std::size_t> highest(const Eigen::VectorXf& scores, std::size_t most) {
    const auto higher = [&](std::size_t a, std::size_t b) {
        const float x = scores(static_cast<Eigen::Index>(a));
        const float y = scores(static_cast<Eigen::Index>(b));
        return x > y || (x == y && a < b);
    };
    std::vector<std::size_t> kept;
    float bar = -std::numeric_limits<float>::infinity();
    for (Eigen::Index i = 0; i < scores.size() && most > 0; ++i) {
        if (kept.size() >= most && scores(i) <= bar) continue;
        kept.push_back(static_cast<std::size_t>(i));
        if (kept.size() < 2 * most) continue;
        const auto last = kept.begin() + static_cast<std::ptrdiff_t>(most) - 1;
        std::nth_element(kept.begin(), last, kept.end(), higher);
        bar = scores(static_cast<Eigen::Index>(*last));
        kept.resize(most);
    }
    std::sort(kept.begin(), kept.end(), higher);
    kept.resize(std::min(kept.size(), most));
    return kept;
}

/// ln alpha of every candidate in single precision, by the weightiest expert alone: to find those worth scoring. Made for what was told; trials that go under way
/// afterwards are added one by one, which is a fraction of the work and gives the same numbers.
class CandidateRanking {
public:
    /// `told` and `candidates` must outlive it. `least_chance`: of working; below, a candidate comes behind all others. `most_bytes`: kept of the candidates'
    /// covariances (pool_posterior.hpp).
    CandidateRanking(const ToldModels& told, const Candidates& candidates, double least_chance, std::size_t most_bytes);

    /// Believes those under way among the lessons that it does not believe yet. False: it believes one that is not under way any more, and must be made anew.
    bool follow(const std::vector<Lesson>& lessons);

    /// `tradeoff`: of several goals, else null. `explore`: ranks for the most uncertain of those that may be best (its upper half deviation reaches the incumbent)
    /// instead.
    [[nodiscard]] Eigen::VectorXf scores(const Tradeoff* tradeoff, bool explore) const;

private:
    [[nodiscard]] Eigen::MatrixXf regressors() const;
    void add_chances(const PoolModel& model, bool probit, const Eigen::MatrixXf& known, double floor);

    const ToldModels& told_;
    const Candidates& candidates_;
    const Expert& expert_;
    PoolPosterior objective_;
    double best_ = 0;          ///< the incumbent's posterior mean
    Eigen::VectorXf chances_;  ///< ln of them all
    std::vector<EncodedPoint> believed_{};
};

inline CandidateRanking::CandidateRanking(const ToldModels& told, const Candidates& candidates, double least_chance, std::size_t most_bytes)
    : told_(told),
      candidates_(candidates),
      expert_(told.objective().experts().front()),
      objective_(expert_.process, told.geometry(), candidates.pool(), regressors(), told.incumbent() != nullptr ? told.observed() : -1,
                 most_bytes),
      chances_(Eigen::VectorXf::Zero(static_cast<Eigen::Index>(candidates.pool().size()))) {
    if (const Lesson* incumbent = told.incumbent())
        best_ = told.objective().predict({incumbent->point}, told.columns({incumbent->beliefs})).front().front().mean;
    for (const ToldModels::LimitModel& limit : told.limits())
        if (limit.margin) add_chances(PoolModel::of(limit.margin->experts().front().process), false, {}, 1e-300);
    if (told.works() == nullptr) return;
    std::size_t next = 0;
    Eigen::MatrixXf margins = Eigen::MatrixXf::Ones(chances_.size(), 2);
    for (float& margin : margins.col(1)) margin = static_cast<float>(believed_margin(candidates.beliefs(next++)));
    add_chances(PoolModel::of(*told.works()), true, margins, least_chance);
}

inline Eigen::MatrixXf CandidateRanking::regressors() const {
    if (!expert_.uses_beliefs) return {};
    std::vector<std::vector<PriorBelief>> beliefs;
    for (std::size_t i = 0; i < candidates_.pool().size(); ++i) beliefs.push_back(candidates_.beliefs(i));
    return Surrogate::regressors(expert_, told_.columns(beliefs)).cast<float>();
}

inline void CandidateRanking::add_chances(const PoolModel& model, bool probit, const Eigen::MatrixXf& known, double floor) {
    const PoolPredictions latent = predict_pool(model, told_.geometry(), candidates_.pool(), known);
    for (Eigen::Index i = 0; i < chances_.size(); ++i) {
        const double spread = std::sqrt((probit ? 1.0 : 0.0) + static_cast<double>(latent.variances(i)));
        const double log_chance = log_normal_cdf(static_cast<double>(latent.means(i)) / spread);
        chances_(i) += static_cast<float>(log_chance);
        constexpr float last_resort = 1000;  // behind all that are above the floor
        if (log_chance < std::log(floor)) chances_(i) -= last_resort;
    }
}

inline bool CandidateRanking::follow(const std::vector<Lesson>& lessons) {
    std::size_t known = 0;
    for (const Lesson& lesson : lessons) {
        if (!lesson.under_way()) continue;
        if (known < believed_.size()) {
            if (believed_[known++] != lesson.point) return false;
            continue;
        }
        const Eigen::MatrixXd row = Surrogate::regressors(expert_, told_.columns({lesson.beliefs}));
        objective_.believe(lesson.point, row.row(0));
        believed_.push_back(lesson.point);
        ++known;
    }
    return known == believed_.size();
}

inline Eigen::VectorXf CandidateRanking::scores(const Tradeoff* tradeoff, bool explore) const {
    const PoolPredictions& objective = objective_.now();
    Eigen::VectorXf result(objective.means.size());
    if (told_.incumbent() == nullptr)
        result = objective.variances.unaryExpr(
            [](float variance) { return static_cast<float>(log_worth_learning(static_cast<double>(variance))); });
    else if (tradeoff != nullptr) tradeoff->rank(objective, told_.geometry(), candidates_.pool(), explore, result);
    else if (explore) {
        const auto best = static_cast<float>(best_);
        for (Eigen::Index i = 0; i < result.size(); ++i) {
            const float sd = std::sqrt(objective.variances(i));
            result(i) = std::log(sd) - (objective.means(i) + sd >= best ? 0 : 100);
        }
    } else
        result = log_expected_gains(objective.means, objective.variances, objective.covariances, static_cast<float>(best_),
                                    static_cast<float>(expert_.process.noise_variance()));
    return result + chances_;
}

}  // namespace servetune
