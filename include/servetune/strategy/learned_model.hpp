// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/acquisition/expected_improvement.hpp"
#include "servetune/model/output_scale.hpp"
#include "servetune/model/surrogate.hpp"
#include "servetune/strategy/bayesian_options.hpp"
#include "servetune/strategy/candidate_score.hpp"
#include "servetune/strategy/candidates.hpp"
#include "servetune/strategy/evidence.hpp"
#include "servetune/strategy/tradeoff.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// All that a history says of configurations that were not tried: Gaussian processes of ln(objective) and of each limit's margin, and a probit process of what
/// works. Made anew for each ask, from the told trials alone.
class LearnedModel {
public:
    using Options = LearningOptions;

    /// `geometry` must outlive it. `noise_cv`: of one measurement, each goal's.
    LearnedModel(const Problem& problem, std::vector<Lesson> lessons, const LevelGeometry& geometry, const std::vector<double>& noise_cv,
                 const Options& options, std::uint64_t seed);

    [[nodiscard]] const std::vector<Lesson>& lessons() const { return lessons_; }
    [[nodiscard]] const OutputScale& scale() const { return scale_; }
    [[nodiscard]] const Surrogate& objective() const { return *objective_; }
    /// The best posterior mean among the lessons that pass; nothing where none does.
    [[nodiscard]] std::optional<std::size_t> incumbent() const { return incumbent_; }
    [[nodiscard]] const std::vector<Prediction>& of_lessons() const { return of_lessons_; }  ///< one each, standardised
    [[nodiscard]] const Tradeoff* tradeoff() const { return tradeoff_.get(); }               ///< of several goals; null where there is one
    /// What is believed of some points as the objective's experts take it: one row each, one column a source.
    [[nodiscard]] Eigen::MatrixXd believed(const std::vector<std::vector<PriorBelief>>& beliefs) const { return columns(beliefs); }
    /// In units of the standardised objective.
    [[nodiscard]] double noise_variance() const { return objective_->experts().front().process.noise_variance(); }

    /// In double, by all experts. `beliefs`: those of each point, none where there are no sources.
    [[nodiscard]] std::vector<CandidateScore> scores(const std::vector<EncodedPoint>& points,
                                                     const std::vector<std::vector<PriorBelief>>& beliefs) const;
    /// ln alpha of each candidate in single precision, by the weightiest expert alone: to find those worth scoring. `explore`: for the most uncertain
    /// of those that may be best (its upper half deviation reaches the incumbent) instead.
    [[nodiscard]] Eigen::VectorXf ranking(const Candidates& candidates, double least_chance, bool explore) const;

private:
    struct LimitModel {
        double unit = 1;
        std::unique_ptr<Surrogate> margin{};  ///< null: no trial has that metric
    };
    [[nodiscard]] Eigen::MatrixXd columns(const std::vector<std::vector<PriorBelief>>& beliefs) const;
    void learn_objective(double noise_cv, const Options& options, std::uint64_t seed);
    void learn_limits(std::size_t limits, const Options& options, std::uint64_t seed);
    void learn_what_works(const Options& options);
    void find_incumbent();

    const LevelGeometry& geometry_;
    std::vector<Lesson> lessons_;
    OutputScale scale_;
    std::vector<double> belief_centres_{};
    std::unique_ptr<Surrogate> objective_{};
    std::vector<LimitModel> limits_{};
    std::unique_ptr<FeasibilityModel> works_{};  ///< null: nothing failed yet and no margin is known
    std::vector<Prediction> of_lessons_{};
    std::optional<std::size_t> incumbent_{};
    Eigen::Index observed_ = 0;             ///< the incumbent, among the objective's observations
    std::unique_ptr<Tradeoff> tradeoff_{};  ///< null: one goal
};

inline LearnedModel::LearnedModel(const Problem& problem, std::vector<Lesson> lessons, const LevelGeometry& geometry,
                                  const std::vector<double>& noise_cv, const Options& options, std::uint64_t seed)
    : geometry_(geometry), lessons_(std::move(lessons)), scale_(problem.objective.direction == Direction::maximize, {}, 0) {
    std::vector<double> values;
    for (const Lesson& lesson : lessons_)
        if (lesson.value) values.push_back(*lesson.value);
    scale_ = OutputScale(problem.objective.direction == Direction::maximize, values,
                         2 * noise_cv.front());  // a spread of noise alone would make noise worth learning
    learn_objective(noise_cv.front(), options, derive_seed(seed, 1));
    learn_limits(problem.objective.limits.size(), options, derive_seed(seed, 2));
    learn_what_works(options);
    find_incumbent();
    if (!problem.objective.several()) return;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const Lesson& lesson : lessons_) beliefs.push_back(lesson.beliefs);
    const Tradeoff::Leading leading{*objective_, columns(beliefs)};
    tradeoff_ = std::make_unique<Tradeoff>(problem, lessons_, leading, geometry, noise_cv, options, derive_seed(seed, 3));
}

/// (m - centre) / spread, held softly within +-3 so that none claims fifty times as much; 0 where nothing is believed.
inline Eigen::MatrixXd LearnedModel::columns(const std::vector<std::vector<PriorBelief>>& beliefs) const {
    const auto sources = static_cast<Eigen::Index>(belief_centres_.size());
    Eigen::MatrixXd result = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(beliefs.size()), sources);
    constexpr double farthest = 3;
    for (Eigen::Index i = 0; i < result.rows(); ++i)
        for (Eigen::Index j = 0; j < sources; ++j)
            if (const auto& m = beliefs[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)].log_value)
                result(i, j) =
                    farthest * std::tanh((scale_.turned(*m) - belief_centres_[static_cast<std::size_t>(j)]) / scale_.spread() / farthest);
    return result;
}

inline void LearnedModel::learn_objective(double noise_cv, const Options& options, std::uint64_t seed) {
    const std::size_t sources = lessons_.empty() ? 0 : lessons_.front().beliefs.size();
    for (std::size_t j = 0; j < sources; ++j) {
        std::vector<double> known;
        for (const Lesson& lesson : lessons_)
            if (lesson.value && lesson.beliefs[j].log_value) known.push_back(scale_.turned(*lesson.beliefs[j].log_value));
        belief_centres_.push_back(median_of(std::move(known)));
    }
    std::vector<double> good;
    for (const Lesson& lesson : lessons_)
        if (lesson.value) good.push_back(scale_.scaled(*lesson.value));
    std::sort(good.begin(), good.end());
    // A bad value: nothing was measured, then one spread below what the first will be.
    const double bad = good.empty() ? -1 : options.failures == FailureLesson::penalty ? good.front() : good[good.size() / 10];

    SurrogateData data;
    std::vector<double> values;
    std::vector<double> factors;
    std::vector<std::vector<PriorBelief>> beliefs;
    bool replicated = false;
    for (const Lesson& lesson : lessons_) {
        const bool told_as_bad = !lesson.value && !lesson.works && options.failures != FailureLesson::classifier;
        if (!lesson.value && !told_as_bad) continue;
        data.points.push_back(lesson.point);
        values.push_back(lesson.value ? scale_.scaled(*lesson.value) : bad);
        factors.push_back(lesson.value ? 1 / lesson.replicates : 1);
        beliefs.push_back(lesson.beliefs);
        replicated = replicated || lesson.replicates > 1;
    }
    const auto n = static_cast<Eigen::Index>(values.size());
    data.values = Eigen::Map<Eigen::VectorXd>(values.data(), n);
    data.noise_factors = Eigen::Map<Eigen::VectorXd>(factors.data(), n);
    data.beliefs = columns(beliefs);
    // Assumed noise may be off by a factor of three either way, measured noise by less than two.
    data.noise_variance = {2 * std::log(std::max(noise_cv, 1e-4) / scale_.spread()), replicated ? 0.5 : 1.0};
    data.additive = options.additive;
    objective_ = std::make_unique<Surrogate>(geometry_, data, seed, options.search);
    for (const Lesson& lesson : lessons_)
        if (lesson.pending && !lesson.value) objective_->believe(lesson.point, columns({lesson.beliefs}).row(0));
}

/// Margins in units of their spread, at least 5 %: what separates runs of one configuration at high percentiles.
inline void LearnedModel::learn_limits(std::size_t limits, const Options& options, std::uint64_t seed) {
    for (std::size_t j = 0; j < limits; ++j) {
        LimitModel& model = limits_.emplace_back();
        SurrogateData data;
        std::vector<double> margins;
        std::vector<double> factors;
        for (const Lesson& lesson : lessons_)
            if (lesson.margins[j]) {
                data.points.push_back(lesson.point);
                margins.push_back(*lesson.margins[j]);
                factors.push_back(1 / std::max(lesson.replicates, 1.0));
            }
        if (margins.empty()) continue;
        std::vector<double> sizes;
        for (const double margin : margins) sizes.push_back(std::abs(margin));
        model.unit = std::max(median_of(sizes), 0.05);
        const auto n = static_cast<Eigen::Index>(margins.size());
        data.values = Eigen::Map<Eigen::VectorXd>(margins.data(), n) / model.unit;
        data.values = (data.values.array() / 3).tanh() * 3;  // how far beyond does not matter
        data.noise_factors = Eigen::Map<Eigen::VectorXd>(factors.data(), n);
        data.beliefs.resize(n, 0);
        model.margin =
            std::make_unique<Surrogate>(geometry_, data, derive_seed(seed, j), HyperparameterSearch{2, 1, options.search.iterations});
    }
}

inline void LearnedModel::learn_what_works(const Options& options) {
    if (options.failures == FailureLesson::penalty) return;
    std::vector<EncodedPoint> points;
    std::vector<bool> works;
    std::vector<double> margins;
    for (const Lesson& lesson : lessons_) {
        if (!lesson.known_to_work && lesson.works) continue;  // under way, or its failure was not its own
        points.push_back(lesson.point);
        works.push_back(lesson.works);
        margins.push_back(believed_margin(lesson.beliefs));
    }
    const auto nothing = [](double margin) { return margin == 0; };
    if (std::find(works.begin(), works.end(), false) == works.end() && std::all_of(margins.begin(), margins.end(), nothing)) return;
    works_ = std::make_unique<FeasibilityModel>(geometry_, std::move(points), works, FeasibilityModel::Options{}, margins);
}

inline void LearnedModel::find_incumbent() {
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const Lesson& lesson : lessons_) {
        points.push_back(lesson.point);
        beliefs.push_back(lesson.beliefs);
    }
    of_lessons_ = objective_->mixed(points, columns(beliefs));
    for (std::size_t i = 0; i < lessons_.size(); ++i)
        if (lessons_[i].passes && (!incumbent_ || of_lessons_[i].mean > of_lessons_[*incumbent_].mean)) incumbent_ = i;
    if (!incumbent_) return;
    const std::vector<EncodedPoint>& observed = objective_->experts().front().process.data().points;
    observed_ = std::find(observed.begin(), observed.end(), lessons_[*incumbent_].point) - observed.begin();
}

inline std::vector<CandidateScore> LearnedModel::scores(const std::vector<EncodedPoint>& points,
                                                        const std::vector<std::vector<PriorBelief>>& beliefs) const {
    std::vector<CandidateScore> result(points.size());
    const Eigen::MatrixXd believed = columns(beliefs);
    const auto each = objective_->predict(points, believed);
    const std::vector<Prediction> mixed = objective_->mixed(points, believed);
    std::vector<double> best;
    if (incumbent_)
        for (const auto& at_incumbent : objective_->predict({lessons_[*incumbent_].point}, columns({lessons_[*incumbent_].beliefs})))
            best.push_back(at_incumbent.front().mean);
    std::vector<Eigen::VectorXd> covariances;
    if (incumbent_) covariances = objective_->covariances(points, believed, observed_);
    constexpr double worth_learning = 0.3;  // of ln sd, where nothing passes yet: what may pass comes first
    for (std::size_t i = 0; i < points.size(); ++i) {
        result[i].objective = mixed[i];
        if (!incumbent_) {
            result[i].log_improvement = worth_learning * 0.5 * std::log(mixed[i].variance);
            continue;
        }
        double sum = 0;
        for (std::size_t e = 0; e < each.size(); ++e) {
            const Expert& expert = objective_->experts()[e];
            const double gain =
                log_expected_gain(each[e][i], best[e], covariances[e](static_cast<Eigen::Index>(i)), expert.process.noise_variance());
            sum += expert.weight * std::exp(std::max(gain, -700.0));
        }
        result[i].log_improvement = std::log(std::max(sum, 1e-300));
    }
    if (tradeoff_ && incumbent_) tradeoff_->score(points, result);
    for (const LimitModel& limit : limits_) {
        if (!limit.margin) continue;
        const std::vector<Prediction> margins = limit.margin->mixed(points, Eigen::MatrixXd(points.size(), 0));
        for (std::size_t i = 0; i < points.size(); ++i)
            result[i].log_limits += log_normal_cdf(margins[i].mean / std::sqrt(margins[i].variance));
    }
    if (works_) {
        Eigen::VectorXd margins(points.size());
        std::transform(beliefs.begin(), beliefs.end(), margins.begin(), believed_margin);
        const Eigen::VectorXd chances = works_->probabilities(distance_tables(geometry_, works_->points(), points), margins);
        for (std::size_t i = 0; i < points.size(); ++i)
            result[i].log_works = std::log(std::max(chances(static_cast<Eigen::Index>(i)), 1e-300));
    }
    return result;
}

inline Eigen::VectorXf LearnedModel::ranking(const Candidates& candidates, double least_chance, bool explore) const {
    const CandidatePool& pool = candidates.pool();
    const auto count = static_cast<Eigen::Index>(pool.size());
    const Expert& expert = objective_->experts().front();
    Eigen::MatrixXf regressors;
    if (expert.uses_beliefs) {
        std::vector<std::vector<PriorBelief>> beliefs;
        for (std::size_t i = 0; i < pool.size(); ++i) beliefs.push_back(candidates.beliefs(i));
        regressors = Surrogate::regressors(expert, columns(beliefs)).cast<float>();
    }
    PoolModel process = PoolModel::of(expert.process);
    if (incumbent_) process.covariance_weights = expert.process.covariance_weights(observed_);
    const PoolPredictions objective = predict_pool(process, geometry_, pool, regressors);
    double best = 0;
    if (incumbent_)
        best = objective_->predict({lessons_[*incumbent_].point}, columns({lessons_[*incumbent_].beliefs})).front().front().mean;
    Eigen::VectorXf result(count);
    for (Eigen::Index i = 0; i < count; ++i) {
        const Prediction prediction{static_cast<double>(objective.means(i)), static_cast<double>(objective.variances(i))};
        const double log_sd = 0.5 * std::log(prediction.variance);
        double score =
            incumbent_ ? log_expected_gain(prediction, best, static_cast<double>(objective.covariances(i)), expert.process.noise_variance())
                       : 0.3 * log_sd;
        if (explore && incumbent_) score = prediction.mean + std::sqrt(prediction.variance) >= best ? log_sd : log_sd - 100;
        result(i) = static_cast<float>(score);
    }
    if (tradeoff_ && incumbent_) tradeoff_->rank(objective, geometry_, pool, explore, result);
    const auto add_chances = [&](const PoolModel& model, bool probit, const Eigen::MatrixXf& known, double floor) {
        const PoolPredictions latent = predict_pool(model, geometry_, pool, known);
        for (Eigen::Index i = 0; i < count; ++i) {
            const double spread = std::sqrt((probit ? 1.0 : 0.0) + static_cast<double>(latent.variances(i)));
            const double log_chance = log_normal_cdf(static_cast<double>(latent.means(i)) / spread);
            result(i) += static_cast<float>(log_chance);
            constexpr float last_resort = 1000;  // behind all that are above the floor
            if (log_chance < std::log(floor)) result(i) -= last_resort;
        }
    };
    for (const LimitModel& limit : limits_)
        if (limit.margin) add_chances(PoolModel::of(limit.margin->experts().front().process), false, {}, 1e-300);
    if (!works_) return result;
    std::size_t next = 0;
    Eigen::MatrixXf margins = Eigen::MatrixXf::Ones(count, 2);
    for (float& margin : margins.col(1)) margin = static_cast<float>(believed_margin(candidates.beliefs(next++)));
    add_chances(PoolModel::of(*works_), true, margins, least_chance);
    return result;
}

}  // namespace servetune
