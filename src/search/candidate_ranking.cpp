// SPDX-License-Identifier: Apache-2.0
#include "candidate_ranking.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace servetune {

std::vector<std::size_t> highest(const Eigen::VectorXf& scores, std::size_t most) {
    const auto higher = [&](std::size_t a, std::size_t b) {
        const float x = scores(static_cast<Eigen::Index>(a));
        const float y = scores(static_cast<Eigen::Index>(b));
        return x > y || (x == y && a < b);
    };
    std::vector<std::size_t> kept;
    float bar = -std::numeric_limits<float>::infinity();
    for (Eigen::Index i = 0; i < scores.size() && most > 0; ++i) {
        if (kept.size() >= most && scores(i) <= bar) continue;
        kept.push_back(std::size_t(i));
        if (kept.size() < 2 * most) continue;
        const auto last = kept.begin() + std::ptrdiff_t(most) - 1;
        std::nth_element(kept.begin(), last, kept.end(), higher);
        bar = scores(static_cast<Eigen::Index>(*last));
        kept.resize(most);
    }
    sort(kept, higher);
    kept.resize(std::min(kept.size(), most));
    return kept;
}

CandidateRanking::CandidateRanking(const FittedModels& told, const Candidates& candidates,
                                   double least_chance)
    : told_(told),
      candidates_(candidates),
      expert_(told.objective().experts().front()),
      regressors_(regressors(expert_, {})),
      objective_(predicted(told.objective(), candidates.pool(), regressors_)),
      chances_(Eigen::VectorXf::Zero(static_cast<Eigen::Index>(candidates.pool().size()))) {
    if (const ConfigurationEvidence* incumbent = told.incumbent())
        incumbent_ = told.objective()
                         .predict({incumbent->point}, told.columns({incumbent->beliefs}))
                         .front()
                         .front();
    for (std::size_t j = 0; j < told.limits().size(); ++j)
        if (const auto& margin = told.limits()[j]) {
            const Expert& expert = margin->experts().front();
            chances_ += log_chances(PoolModel::of(expert.process), false, regressors(expert, j));
        }
    chances_ += log_works(least_chance);
    bounds_ = chances_;
    if (told.incumbent() == nullptr) bounds_ += gains(objective_, false);
    else
        bounds_ += log_gain_bounds(objective_.means, objective_.variances, objective_.covariances,
                                   static_cast<float>(incumbent_.mean),
                                   static_cast<float>(expert_.process.noise_variance()),
                                   static_cast<float>(incumbent_.variance));
}

Eigen::MatrixXf CandidateRanking::regressors(const Expert& expert,
                                             std::optional<std::size_t> limit) const {
    if (expert.beliefs.empty()) return {};
    std::vector<std::vector<PriorBelief>> beliefs;
    for (std::size_t i = 0; i < candidates_.pool().size(); ++i)
        beliefs.push_back(candidates_.beliefs(i));
    return Surrogate::regressors(expert, told_.columns(beliefs, limit)).cast<float>();
}

Eigen::VectorXf CandidateRanking::log_chances(const PoolModel& model, bool probit,
                                              const Eigen::MatrixXf& known) const {
    const PoolPredictions latent = predict_pool(model, told_.geometry(), candidates_.pool(), known);
    Eigen::VectorXf result(latent.means.size());
    for (Eigen::Index i = 0; i < result.size(); ++i) {
        const double spread = std::sqrt((probit ? 1.0 : 0.0) + double(latent.variances(i)));
        result(i) = static_cast<float>(log_normal_cdf(double(latent.means(i)) / spread));
    }
    return result;
}

Eigen::VectorXf CandidateRanking::log_works(double least_chance) const {
    Eigen::VectorXf result = Eigen::VectorXf::Zero(chances_.size());
    if (told_.works() != nullptr) {
        std::size_t next = 0;
        Eigen::MatrixXf margins = Eigen::MatrixXf::Ones(result.size(), 2);
        for (float& margin : margins.col(1))
            margin = static_cast<float>(believed_margin(candidates_.beliefs(next++)));
        result = log_chances(PoolModel::of(*told_.works()), true, margins);
    }
    const std::vector<bool> out = told_.out_of_memory().covers(candidates_.pool());
    const auto of_those = static_cast<float>(std::log(OutOfMemoryRule::chance));
    const auto least = static_cast<float>(std::log(least_chance));
    constexpr float last_resort = 1000;  // behind all that are above the least chance
    for (Eigen::Index i = 0; i < result.size(); ++i) {
        if (out[std::size_t(i)]) result(i) = std::min(result(i), of_those);
        if (result(i) < least) result(i) -= last_resort;
    }
    return result;
}

PoolPredictions CandidateRanking::predicted(const Surrogate& objective, const CandidatePool& pool,
                                            const Eigen::MatrixXf& regressors) const {
    const GaussianProcess& process = objective.experts().front().process;
    PoolModel model = PoolModel::of(process, expert_.process.data().points.size());
    if (told_.incumbent() != nullptr)
        model.covariance_weights = process.covariance_weights(told_.observed());
    return predict_pool(model, told_.geometry(), pool, regressors);
}

Eigen::VectorXf CandidateRanking::gains(const PoolPredictions& objective, bool explore) const {
    const auto best = static_cast<float>(incumbent_.mean);
    if (told_.incumbent() == nullptr)
        return objective.variances.unaryExpr([](float variance) {
            return static_cast<float>(log_worth_learning(double(variance)));
        });
    if (!explore)
        return log_expected_gains(objective.means, objective.variances, objective.covariances, best,
                                  static_cast<float>(expert_.process.noise_variance()));
    Eigen::VectorXf result(objective.means.size());
    for (Eigen::Index i = 0; i < result.size(); ++i) {
        const float sd = std::sqrt(objective.variances(i));
        result(i) = std::log(sd) - (objective.means(i) + sd >= best ? 0 : 100);
    }
    return result;
}

Eigen::VectorXf CandidateRanking::scores(const PendingAwareModel& model, bool explore) const {
    const bool anew = model.under_way() > 0;
    const PoolPredictions beside =
        anew ? predicted(model.objective(), candidates_.pool(), regressors_) : PoolPredictions{};
    const PoolPredictions& objective = anew ? beside : objective_;
    Eigen::VectorXf result(chances_.size());
    if (model.tradeoff() != nullptr && told_.incumbent() != nullptr)
        model.tradeoff()->rank(objective, told_.geometry(), candidates_.pool(), explore, result);
    else result = gains(objective, explore);
    return result + chances_;
}

std::vector<std::size_t> CandidateRanking::best(const PendingAwareModel& model, std::size_t most,
                                                bool explore) const {
    if (model.under_way() == 0) return highest(scores(model, explore), most);
    const Eigen::VectorXf of_exploring =
        explore ? Eigen::VectorXf(gains(objective_, true) + chances_) : Eigen::VectorXf();
    const Eigen::VectorXf& bounds = explore ? of_exploring : bounds_;
    for (std::size_t count = 3 * most;;
         count *= 4) {  // of 103 680, 60 told, the first round was enough
        std::vector<std::size_t> some = highest(bounds, count);
        const bool all = some.size() == candidates_.pool().size();
        const float of_others = all ? 0 : bounds(static_cast<Eigen::Index>(some.back()));
        sort(some);
        const Eigen::MatrixXf known = regressors_.size() > 0
                                          ? Eigen::MatrixXf(regressors_(some, Eigen::all))
                                          : Eigen::MatrixXf();
        const CandidatePool pool(candidates_.pool(), some);
        const Eigen::VectorXf scores =
            gains(predicted(model.objective(), pool, known), explore) + chances_(some);
        std::vector<std::size_t> result = highest(scores, most);
        if (!all && !(scores(static_cast<Eigen::Index>(result.back())) > of_others)) continue;
        for (std::size_t& i : result) i = some[i];
        return result;
    }
}

}  // namespace servetune
