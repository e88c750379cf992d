// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/acquisition/expected_improvement.hpp"
#include "servetune/strategy/candidate_score.hpp"
#include "servetune/strategy/told_models.hpp"
#include "servetune/strategy/tradeoff.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// All that a history says of configurations that were not tried: what was fitted to the told trials (told_models.hpp), and those under way as if each gave what is
/// expected of it.
class LearnedModel {
public:
    /// `lessons`: of all, those under way as well. `noise_cv`: of one measurement, each goal's.
    LearnedModel(const Problem& problem, std::shared_ptr<const ToldModels> told, std::vector<Lesson> lessons,
                 const std::vector<double>& noise_cv, const LearningOptions& options, std::uint64_t seed);

    [[nodiscard]] const std::vector<Lesson>& lessons() const { return lessons_; }
    [[nodiscard]] std::size_t under_way() const {
        return static_cast<std::size_t>(objective_.experts().front().process.size() - told_->objective().experts().front().process.size());
    }
    [[nodiscard]] const OutputScale& scale() const { return told_->scale(); }
    [[nodiscard]] const Surrogate& objective() const { return objective_; }
    /// The best posterior mean among the lessons that pass; nothing where none does.
    [[nodiscard]] std::optional<std::size_t> incumbent() const { return incumbent_; }
    [[nodiscard]] const std::vector<Prediction>& of_lessons() const { return of_lessons_; }  ///< one each, standardised
    [[nodiscard]] const Tradeoff* tradeoff() const { return tradeoff_.get(); }               ///< of several goals; null where there is one
    /// What is believed of some points as the objective's experts take it: one row each, one column a source.
    [[nodiscard]] Eigen::MatrixXd believed(const std::vector<std::vector<PriorBelief>>& beliefs) const { return told_->columns(beliefs); }
    /// In units of the standardised objective.
    [[nodiscard]] double noise_variance() const { return objective_.experts().front().process.noise_variance(); }

    /// In double, by all experts. `beliefs`: those of each point, none where there are no sources.
    [[nodiscard]] std::vector<CandidateScore> scores(const std::vector<EncodedPoint>& points,
                                                     const std::vector<std::vector<PriorBelief>>& beliefs) const;

private:
    std::shared_ptr<const ToldModels> told_;
    std::vector<Lesson> lessons_;
    Surrogate objective_;
    std::vector<Prediction> of_lessons_{};
    std::optional<std::size_t> incumbent_{};
    std::unique_ptr<Tradeoff> tradeoff_{};  ///< null: one goal
};

inline LearnedModel::LearnedModel(const Problem& problem, std::shared_ptr<const ToldModels> told, std::vector<Lesson> lessons,
                                  const std::vector<double>& noise_cv, const LearningOptions& options, std::uint64_t seed)
    : told_(std::move(told)), lessons_(std::move(lessons)), objective_(told_->objective()) {
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (std::size_t i = 0; i < lessons_.size(); ++i) {
        const Lesson& lesson = lessons_[i];
        if (lesson.under_way()) objective_.believe(lesson.point, believed({lesson.beliefs}).row(0));
        if (told_->incumbent() != nullptr && lesson.configuration == told_->incumbent()->configuration) incumbent_ = i;
        points.push_back(lesson.point);
        beliefs.push_back(lesson.beliefs);
    }
    of_lessons_ = objective_.mixed(points, believed(beliefs));
    if (!problem.objective.several()) return;
    const Tradeoff::Leading leading{objective_, believed(beliefs)};
    tradeoff_ = std::make_unique<Tradeoff>(problem, lessons_, leading, told_->geometry(), noise_cv, options, derive_seed(seed, 3));
}

inline std::vector<CandidateScore> LearnedModel::scores(const std::vector<EncodedPoint>& points,
                                                        const std::vector<std::vector<PriorBelief>>& beliefs) const {
    std::vector<CandidateScore> result(points.size());
    const Eigen::MatrixXd known = believed(beliefs);
    if (incumbent_) {
        std::vector<std::vector<Prediction>> each;
        std::vector<double> gains(points.size(), 0.0);
        const Lesson& best = lessons_[*incumbent_];
        const auto at_best = objective_.predict({best.point}, believed({best.beliefs}));
        for (Surrogate::Beside& beside : objective_.predict_beside(points, known, told_->observed())) {
            const std::size_t e = each.size();
            const Expert& expert = objective_.experts()[e];
            for (std::size_t i = 0; i < points.size(); ++i) {
                const double gain = log_expected_gain(beside.predictions[i], at_best[e].front().mean,
                                                      beside.covariances(static_cast<Eigen::Index>(i)), expert.process.noise_variance());
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
    for (const ToldModels::LimitModel& limit : told_->limits()) {
        if (!limit.margin) continue;
        const std::vector<Prediction> margins = limit.margin->mixed(points, Eigen::MatrixXd(points.size(), 0));
        for (std::size_t i = 0; i < points.size(); ++i)
            result[i].log_limits += log_normal_cdf(margins[i].mean / std::sqrt(margins[i].variance));
    }
    if (const FeasibilityModel* works = told_->works()) {
        Eigen::VectorXd margins(points.size());
        std::transform(beliefs.begin(), beliefs.end(), margins.begin(), believed_margin);
        const Eigen::VectorXd chances = works->probabilities(points, margins);
        for (std::size_t i = 0; i < points.size(); ++i)
            result[i].log_works = std::log(std::max(chances(static_cast<Eigen::Index>(i)), 1e-300));
    }
    const std::vector<bool> out = told_->ran_out().covers(points);
    for (std::size_t i = 0; i < points.size(); ++i)
        if (out[i]) result[i].log_works = std::min(result[i].log_works, std::log(RanOut::chance));
    return result;
}

}  // namespace servetune
