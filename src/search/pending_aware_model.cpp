// SPDX-License-Identifier: Apache-2.0
#include "pending_aware_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {

PendingAwareModel::PendingAwareModel(const Problem& problem,
                                     std::shared_ptr<const FittedModels> told,
                                     std::vector<ConfigurationEvidence> evidence,
                                     const std::vector<double>& noise_cv)
    : told_(std::move(told)), evidence_(std::move(evidence)), objective_(told_->objective()) {
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (std::size_t i = 0; i < evidence_.size(); ++i) {
        const ConfigurationEvidence& entry = evidence_[i];
        if (entry.under_way()) objective_.believe(entry.point, believed({entry.beliefs}).row(0));
        if (told_->incumbent() != nullptr &&
            entry.configuration == told_->incumbent()->configuration)
            incumbent_ = i;
        points.push_back(entry.point);
        beliefs.push_back(entry.beliefs);
    }
    at_evidence_ = objective_.mixed(points, believed(beliefs));
    if (!problem.objective.several()) return;
    const Tradeoff::Leading leading{objective_, believed(beliefs)};
    tradeoff_ = std::make_unique<Tradeoff>(problem, evidence_, leading, told_->geometry(),
                                           noise_cv[1], derive_seed(told_->seed(), 3));
}

std::vector<CandidateScore> PendingAwareModel::scores(
    const std::vector<EncodedPoint>& points,
    const std::vector<std::vector<PriorBelief>>& beliefs) const {
    std::vector<CandidateScore> result(points.size());
    const Eigen::MatrixXd known = believed(beliefs);
    if (incumbent_) {
        std::vector<std::vector<Prediction>> each;
        std::vector<double> gains(points.size(), 0.0);
        const ConfigurationEvidence& best = evidence_[*incumbent_];
        const auto at_best = objective_.predict({best.point}, believed({best.beliefs}));
        for (Surrogate::Beside& beside :
             objective_.predict_beside(points, known, told_->observed())) {
            const std::size_t e = each.size();
            const Expert& expert = objective_.experts()[e];
            for (std::size_t i = 0; i < points.size(); ++i) {
                const double gain =
                    log_expected_gain(beside.predictions[i], at_best[e].front().mean,
                                      beside.covariances(static_cast<Eigen::Index>(i)),
                                      expert.process.noise_variance());
                gains[i] += expert.weight * std::exp(std::max(gain, -700.0));
            }
            each.push_back(std::move(beside.predictions));
        }
        const std::vector<Prediction> mixed = objective_.mixed(each);
        for (std::size_t i = 0; i < points.size(); ++i) {
            result[i].objective = mixed[i];
            result[i].log_improvement = std::log(std::max(gains[i], 1e-300));
        }
    } else {
        const std::vector<Prediction> mixed = objective_.mixed(points, known);
        for (std::size_t i = 0; i < points.size(); ++i) {
            result[i].objective = mixed[i];
            result[i].log_improvement = log_worth_learning(mixed[i].variance);
        }
    }
    if (tradeoff_ && incumbent_) tradeoff_->score(points, result);
    for (std::size_t j = 0; j < told_->limits().size(); ++j) {
        if (!told_->limits()[j]) continue;
        const std::vector<Prediction> margins =
            told_->limits()[j]->mixed(points, told_->columns(beliefs, j));
        for (std::size_t i = 0; i < points.size(); ++i)
            result[i].log_limits +=
                log_normal_cdf(margins[i].mean / std::sqrt(margins[i].variance));
    }
    if (const FeasibilityModel* works = told_->works()) {
        Eigen::VectorXd margins(points.size());
        std::transform(beliefs.begin(), beliefs.end(), margins.begin(), believed_margin);
        const Eigen::VectorXd chances = works->probabilities(points, margins);
        for (std::size_t i = 0; i < points.size(); ++i)
            result[i].log_works = std::log(std::max(chances(static_cast<Eigen::Index>(i)), 1e-300));
    }
    const std::vector<bool> out = told_->out_of_memory().covers(points);
    for (std::size_t i = 0; i < points.size(); ++i)
        if (out[i])
            result[i].log_works = std::min(result[i].log_works, std::log(OutOfMemoryRule::chance));
    return result;
}

}  // namespace servetune
