// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/acquisition/candidate_pool.hpp"
#include "servetune/acquisition/chebyshev.hpp"
#include "servetune/acquisition/hypervolume.hpp"
#include "servetune/base/dominance.hpp"
#include "servetune/model/output_scale.hpp"
#include "servetune/model/surrogate.hpp"
#include "servetune/strategy/bayesian_options.hpp"
#include "servetune/strategy/candidate_score.hpp"
#include "servetune/strategy/evidence.hpp"
#include "servetune/strategy/goal_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace servetune {

/// What a point in several goals is worth beside what is known: with two goals what it adds to the hypervolume, with more by how much it beats the best for one set
/// of weights. All goals standardised, more is better; goals of a point are taken as independent.
class FrontValue {
public:
    /// `means`: of what passes, one or more, a point each; `reference` below the front, `weights` positive (for more than two goals).
    FrontValue(const std::vector<std::vector<double>>& means, const std::vector<double>& reference, const std::vector<double>& weights);

    /// ln of what a measurement is expected to add.
    [[nodiscard]] double log_expected_improvement(std::span<const Prediction> goals) const {
        return staircase_ ? staircase_->log_expected_improvement(goals[0], goals[1]) : scalar_->log_expected_improvement(goals, best_);
    }
    /// What a point adds that is known.
    [[nodiscard]] double improvement(std::span<const double> point) const {
        return staircase_ ? staircase_->improvement({point[0], point[1]}) : std::max(scalar_->value(point) - best_, 0.0);
    }

private:
    std::optional<Staircase> staircase_{};
    std::optional<Chebyshev> scalar_{};
    double best_ = 0;
};

/// The goals beside the leading one, each with a Gaussian process of its own over ln(value), and the front of all.
///
/// - The front: posterior means of the lessons that pass, no number that was merely seen.
/// - The reference point lies below the front's worst in each goal, by a tenth of the front's range in it, at least by `least_depth`: a front of
///   one point has no range, and nothing that trades one goal for another would be worth anything. On a made-up task (1344 configurations, 30 trials, 24
///   seeds, 3 % noise) a least depth of 0, 0.1, 0.5, 1 and 2 found 0.924, 0.926, 0.939, 0.951 and 0.953 of the area under the true front.
/// - Weights, for three goals and more, are drawn anew for each number of asked trials, so that asks in a row, and beside each other, look at other parts of
///   the front. They depend on the history alone.
/// - Knowledge (PriorMean) is of the leading goal; these learn from trials.
class Tradeoff {
public:
    static constexpr double depth = 0.1;
    static constexpr double least_depth = 1;  ///< spreads of the goal: what a study of one goal takes as a usual difference

    /// The leading goal's process, and what it takes as believed of each lesson.
    struct Leading {
        const Surrogate& process;
        Eigen::MatrixXd beliefs;
    };
    /// `noise_cv`: of one measurement, each goal's, the leading one first. `geometry` must outlive it.
    Tradeoff(const Problem& problem, const std::vector<Lesson>& lessons, const Leading& leading, const LevelGeometry& geometry,
             const std::vector<double>& noise_cv, const LearningOptions& options, std::uint64_t seed);

    /// Lessons whose posterior means no other passing one beats in all goals together, in the order of the lessons.
    [[nodiscard]] const std::vector<std::size_t>& front() const { return front_; }
    /// Puts what the front is expected to gain in the place of the leading goal's improvement, by the mixtures of all goals. Something must pass.
    void score(const std::vector<EncodedPoint>& points, std::vector<CandidateScore>& scores) const;
    /// The same of a pool in single precision, by the weightiest expert of each goal; `leading`: that of the leading one. `explore`: how uncertain all goals are
    /// together; 100 less where even a deviation better in each of them would add nothing.
    void rank(const PoolPredictions& leading, const LevelGeometry& geometry, const CandidatePool& pool, bool explore,
              Eigen::VectorXf& result) const;
    /// The lesson whose measurement once more is expected to change the front most, and ln of by how much. `noise_variance`: of the leading goal.
    [[nodiscard]] std::optional<std::pair<std::size_t, double>> best_replicate(const std::vector<Lesson>& lessons,
                                                                               double noise_variance) const;

private:
    struct GoalModel {
        OutputScale scale;
        std::unique_ptr<Surrogate> process;
    };
    [[nodiscard]] std::vector<std::vector<Prediction>> further(const std::vector<EncodedPoint>& points) const;
    [[nodiscard]] static GoalModel learned(const Goal& goal, std::size_t k, const std::vector<Lesson>& lessons,
                                           const LevelGeometry& geometry, double noise_cv, const LearningOptions& options,
                                           std::uint64_t seed);
    /// Means of the passing lessons but one; `goals`: a list a goal.
    [[nodiscard]] static std::vector<std::vector<double>> passing_means(const std::vector<Lesson>& lessons,
                                                                        const std::vector<std::vector<Prediction>>& goals,
                                                                        std::size_t without);
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::vector<GoalModel> models_{};
    std::vector<std::vector<Prediction>> of_lessons_{};  ///< a list a goal, the leading one first
    std::vector<std::size_t> front_{};
    std::vector<double> weights_{};
    std::vector<double> reference_{};
    std::optional<FrontValue> value_{};                ///< by the mixtures; nothing where nothing passes
    std::optional<FrontValue> value_by_weightiest_{};  ///< by the weightiest expert of each goal
};

inline FrontValue::FrontValue(const std::vector<std::vector<double>>& means, const std::vector<double>& reference,
                              const std::vector<double>& weights) {
    if (reference.size() == 2) {
        std::vector<Staircase::Point> points;
        for (const std::vector<double>& mean : means) points.push_back({mean[0], mean[1]});
        staircase_.emplace(std::move(points), Staircase::Point{reference[0], reference[1]});
        return;
    }
    // Each goal in units of what lies between reference and best: no goal has more say because it varies more.
    std::vector<double> best = means.front();
    for (const std::vector<double>& mean : means)
        for (std::size_t k = 0; k < best.size(); ++k) best[k] = std::max(best[k], mean[k]);
    std::vector<double> scaled;
    for (std::size_t k = 0; k < best.size(); ++k) scaled.push_back(weights[k] / std::max(best[k] - reference[k], 1e-9));
    scalar_.emplace(std::move(scaled), std::move(best));
    best_ = scalar_->value(means.front());
    for (const std::vector<double>& mean : means) best_ = std::max(best_, scalar_->value(mean));
}

inline Tradeoff::Tradeoff(const Problem& problem, const std::vector<Lesson>& lessons, const Leading& leading, const LevelGeometry& geometry,
                          const std::vector<double>& noise_cv, const LearningOptions& options, std::uint64_t seed) {
    std::vector<EncodedPoint> points;
    std::size_t trials = 0;
    for (const Lesson& lesson : lessons) {
        points.push_back(lesson.point);
        trials += lesson.trials;
    }
    const std::vector<Goal>& goals = problem.objective.further;
    for (std::size_t k = 0; k < goals.size(); ++k)
        models_.push_back(learned(goals[k], k, lessons, geometry, noise_cv[k + 1], options, derive_seed(seed, k)));
    Rng rng(derive_seed(derive_seed(seed, goals.size()), trials));
    weights_ = Chebyshev::drawn_weights(goals.size() + 1, rng);

    of_lessons_ = further(points);
    of_lessons_.insert(of_lessons_.begin(), leading.process.mixed(points, leading.beliefs));
    const std::vector<std::vector<double>> means = passing_means(lessons, of_lessons_, none);
    if (means.empty()) return;
    std::vector<std::size_t> passing;
    for (std::size_t i = 0; i < lessons.size(); ++i)
        if (lessons[i].passes) passing.push_back(i);
    const std::vector<std::size_t> best = non_dominated(means);
    for (const std::size_t i : best) front_.push_back(passing[i]);
    for (std::size_t k = 0; k <= goals.size(); ++k) {
        double low = means[best.front()][k];
        double high = low;
        for (const std::size_t i : best) {
            low = std::min(low, means[i][k]);
            high = std::max(high, means[i][k]);
        }
        reference_.push_back(low - std::max(depth * (high - low), least_depth));
    }
    value_.emplace(means, reference_, weights_);
    std::vector<std::vector<Prediction>> weightiest{leading.process.predict(points, leading.beliefs).front()};
    const Eigen::MatrixXd nothing(static_cast<Eigen::Index>(points.size()), 0);
    for (const GoalModel& model : models_) weightiest.push_back(model.process->predict(points, nothing).front());
    value_by_weightiest_.emplace(passing_means(lessons, weightiest, none), reference_, weights_);
}

/// As the leading goal is learned, without knowledge.
inline Tradeoff::GoalModel Tradeoff::learned(const Goal& goal, std::size_t k, const std::vector<Lesson>& lessons,
                                             const LevelGeometry& geometry, double noise_cv, const LearningOptions& options,
                                             std::uint64_t seed) {
    std::vector<double> measured;
    for (const Lesson& lesson : lessons)
        if (lesson.value) measured.push_back(lesson.further[k]);
    const OutputScale scale(goal.direction == Direction::maximize, measured, 2 * noise_cv);
    const SurrogateData data = goal_data(
                                   lessons, [k](const Lesson& lesson) { return lesson.further[k]; }, scale, noise_cv, options)
                                   .data;
    GoalModel result{scale, std::make_unique<Surrogate>(geometry, data, seed, options.search)};
    for (const Lesson& lesson : lessons)
        if (lesson.under_way()) result.process->believe(lesson.point, Eigen::RowVectorXd(0));
    return result;
}

inline std::vector<std::vector<Prediction>> Tradeoff::further(const std::vector<EncodedPoint>& points) const {
    std::vector<std::vector<Prediction>> result;
    const Eigen::MatrixXd nothing(static_cast<Eigen::Index>(points.size()), 0);
    for (const GoalModel& model : models_) result.push_back(model.process->mixed(points, nothing));
    return result;
}

inline std::vector<std::vector<double>> Tradeoff::passing_means(const std::vector<Lesson>& lessons,
                                                                const std::vector<std::vector<Prediction>>& goals, std::size_t without) {
    std::vector<std::vector<double>> result;
    for (std::size_t i = 0; i < lessons.size(); ++i) {
        if (!lessons[i].passes || i == without) continue;
        std::vector<double>& point = result.emplace_back();
        for (const std::vector<Prediction>& goal : goals) point.push_back(goal[i].mean);
    }
    return result;
}

inline void Tradeoff::score(const std::vector<EncodedPoint>& points, std::vector<CandidateScore>& scores) const {
    const std::vector<std::vector<Prediction>> others = further(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
        std::vector<Prediction> goals{scores[i].objective};
        for (const std::vector<Prediction>& goal : others) goals.push_back(goal[i]);
        scores[i].log_improvement = value_->log_expected_improvement(goals);
    }
}

inline void Tradeoff::rank(const PoolPredictions& leading, const LevelGeometry& geometry, const CandidatePool& pool, bool explore,
                           Eigen::VectorXf& result) const {
    std::vector<PoolPredictions> others;
    for (const GoalModel& model : models_)
        others.push_back(predict_pool(PoolModel::of(model.process->experts().front().process), geometry, pool, {}));
    std::vector<Prediction> goals(others.size() + 1);
    std::vector<double> hoped(goals.size());
    for (Eigen::Index i = 0; i < result.size(); ++i) {
        double log_sd = 0;
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const PoolPredictions& from = k == 0 ? leading : others[k - 1];
            goals[k] = {static_cast<double>(from.means(i)), static_cast<double>(from.variances(i))};
            hoped[k] = goals[k].mean + std::sqrt(goals[k].variance);
            log_sd += 0.5 * std::log(goals[k].variance);
        }
        double score = 0;
        if (explore) score = value_by_weightiest_->improvement(hoped) > 0 ? log_sd : log_sd - 100;
        else score = value_by_weightiest_->log_expected_improvement(goals);
        result(i) = static_cast<float>(score);
    }
}

/// With one goal this is the knowledge gradient of one more sample (Frazier, Powell, Dayanik 2009): what the lesson is expected to add to the others once its
/// mean has moved by what a measurement tells, less what it adds now. Never negative: what a point adds is convex in each of its goals.
inline std::optional<std::pair<std::size_t, double>> Tradeoff::best_replicate(const std::vector<Lesson>& lessons,
                                                                              double noise_variance) const {
    std::optional<std::pair<std::size_t, double>> result;
    for (std::size_t i = 0; i < lessons.size(); ++i) {
        if (!lessons[i].passes || lessons[i].pending) continue;
        const std::vector<std::vector<double>> others = passing_means(lessons, of_lessons_, i);
        if (others.empty()) continue;
        const FrontValue beside(others, reference_, weights_);
        std::vector<Prediction> moved;
        std::vector<double> now;
        for (std::size_t k = 0; k < of_lessons_.size(); ++k) {
            const Prediction& prediction = of_lessons_[k][i];
            const double noise = k == 0 ? noise_variance : models_[k - 1].process->experts().front().process.noise_variance();
            moved.push_back({prediction.mean, prediction.variance * prediction.variance / (prediction.variance + noise)});
            now.push_back(prediction.mean);
        }
        const double then = std::exp(beside.log_expected_improvement(moved));
        const double change = then - beside.improvement(now);
        constexpr double rounding = 1e-6;  // of both, that the integral of three goals and more carries
        if (change <= rounding * then) continue;
        if (const double value = std::log(change); !result || value > result->second) result = {i, value};
    }
    return result;
}

}  // namespace servetune
