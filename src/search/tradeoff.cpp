// SPDX-License-Identifier: Apache-2.0
#include "tradeoff.hpp"
#include "base/present.hpp"

#include <cmath>

namespace servetune {

FrontValue::FrontValue(const std::vector<std::vector<double>>& means,
                       const std::vector<double>& reference, const std::vector<double>& weights) {
    if (reference.size() == 2) {
        std::vector<Staircase::Point> points;
        for (const std::vector<double>& mean : means) points.push_back({mean[0], mean[1]});
        staircase_.emplace(std::move(points), Staircase::Point{reference[0], reference[1]});
        return;
    }
    // Each goal in units of what lies between reference and best: no goal has more say because it
    // varies more.
    std::vector<double> best = means.front();
    for (const std::vector<double>& mean : means)
        for (std::size_t k = 0; k < best.size(); ++k) best[k] = std::max(best[k], mean[k]);
    std::vector<double> scaled;
    for (std::size_t k = 0; k < best.size(); ++k)
        scaled.push_back(weights[k] / std::max(best[k] - reference[k], 1e-9));
    scalar_.emplace(std::move(scaled), std::move(best));
    best_ = scalar_->value(means.front());
    for (const std::vector<double>& mean : means) best_ = std::max(best_, scalar_->value(mean));
}

Tradeoff::Tradeoff(const Problem& problem, const std::vector<ConfigurationEvidence>& evidence,
                   const Leading& leading, const LevelGeometry& geometry,
                   const std::vector<double>& noise_cv, const LearningOptions& options,
                   std::uint64_t seed) {
    std::vector<EncodedPoint> points;
    std::size_t trials = 0;
    for (const ConfigurationEvidence& entry : evidence) {
        points.push_back(entry.point);
        trials += entry.trials;
    }
    const std::vector<Goal>& goals = problem.objective.goals;
    for (std::size_t k = 1; k < goals.size(); ++k)
        models_.push_back(learned(goals[k], k, evidence, geometry, noise_cv[k], options,
                                  derive_seed(seed, k - 1)));
    Rng rng(derive_seed(derive_seed(seed, goals.size() - 1), trials));
    weights_ = Chebyshev::drawn_weights(goals.size(), rng);

    at_evidence_ = further(points);
    at_evidence_.insert(at_evidence_.begin(), leading.process.mixed(points, leading.beliefs));
    const std::vector<std::vector<double>> means = passing_means(evidence, at_evidence_, none);
    if (means.empty()) return;
    std::vector<std::size_t> passing;
    for (std::size_t i = 0; i < evidence.size(); ++i)
        if (evidence[i].passes) passing.push_back(i);
    const std::vector<std::size_t> best = non_dominated(means);
    for (const std::size_t i : best) front_.push_back(passing[i]);
    for (std::size_t k = 0; k < goals.size(); ++k) {
        double low = means[best.front()][k];
        double high = low;
        for (const std::size_t i : best) {
            low = std::min(low, means[i][k]);
            high = std::max(high, means[i][k]);
        }
        reference_.push_back(low - std::max(depth * (high - low), least_depth));
    }
    value_.emplace(means, reference_, weights_);
    std::vector<std::vector<Prediction>> weightiest{
        leading.process.predict(points, leading.beliefs).front()};
    const Eigen::MatrixXd nothing(static_cast<Eigen::Index>(points.size()), 0);
    for (const GoalModel& model : models_)
        weightiest.push_back(model.process->predict(points, nothing).front());
    value_by_weightiest_.emplace(passing_means(evidence, weightiest, none), reference_, weights_);
}

/// As the leading goal is learned, without knowledge.
Tradeoff::GoalModel Tradeoff::learned(const Goal& goal, std::size_t k,
                                      const std::vector<ConfigurationEvidence>& evidence,
                                      const LevelGeometry& geometry, double noise_cv,
                                      const LearningOptions& options, std::uint64_t seed) {
    std::vector<double> measured;
    for (const ConfigurationEvidence& entry : evidence)
        if (entry.measured()) measured.push_back(entry.means[k]);
    const OutputScale scale(goal.direction == Direction::maximize, measured, 2 * noise_cv);
    const SurrogateData data = goal_data(evidence, k, scale, noise_cv, options).data;
    GoalModel result{scale, std::make_unique<Surrogate>(geometry, data, seed, options.search)};
    for (const ConfigurationEvidence& entry : evidence)
        if (entry.under_way()) result.process->believe(entry.point, Eigen::RowVectorXd(0));
    return result;
}

std::vector<std::vector<Prediction>> Tradeoff::further(
    const std::vector<EncodedPoint>& points) const {
    std::vector<std::vector<Prediction>> result;
    const Eigen::MatrixXd nothing(static_cast<Eigen::Index>(points.size()), 0);
    for (const GoalModel& model : models_) result.push_back(model.process->mixed(points, nothing));
    return result;
}

std::vector<std::vector<double>> Tradeoff::passing_means(
    const std::vector<ConfigurationEvidence>& evidence,
    const std::vector<std::vector<Prediction>>& goals, std::size_t without) {
    std::vector<std::vector<double>> result;
    for (std::size_t i = 0; i < evidence.size(); ++i) {
        if (!evidence[i].passes || i == without) continue;
        std::vector<double>& point = result.emplace_back();
        for (const std::vector<Prediction>& goal : goals) point.push_back(goal[i].mean);
    }
    return result;
}

void Tradeoff::score(const std::vector<EncodedPoint>& points,
                     std::vector<CandidateScore>& scores) const {
    const std::vector<std::vector<Prediction>> others = further(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
        std::vector<Prediction> goals{scores[i].objective};
        for (const std::vector<Prediction>& goal : others) goals.push_back(goal[i]);
        scores[i].log_improvement = present(value_).log_expected_improvement(goals);
    }
}

void Tradeoff::rank(const PoolPredictions& leading, const LevelGeometry& geometry,
                    const CandidatePool& pool, bool explore, Eigen::VectorXf& result) const {
    std::vector<PoolPredictions> others;
    for (const GoalModel& model : models_)
        others.push_back(predict_pool(PoolModel::of(model.process->experts().front().process),
                                      geometry, pool, {}));
    std::vector<Prediction> goals(others.size() + 1);
    std::vector<double> hoped(goals.size());
    const FrontValue& value = present(value_by_weightiest_);
    for (Eigen::Index i = 0; i < result.size(); ++i) {
        double log_sd = 0;
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const PoolPredictions& from = k == 0 ? leading : others[k - 1];
            goals[k] = {static_cast<double>(from.means(i)), static_cast<double>(from.variances(i))};
            hoped[k] = goals[k].mean + std::sqrt(goals[k].variance);
            log_sd += 0.5 * std::log(goals[k].variance);
        }
        double score = 0;
        if (explore) score = value.improvement(hoped) > 0 ? log_sd : log_sd - 100;
        else score = value.log_expected_improvement(goals);
        result(i) = static_cast<float>(score);
    }
}

/// With one goal this is the knowledge gradient of one more sample (Frazier, Powell, Dayanik 2009):
/// what the entry is expected to add to the others once its mean has moved by what a measurement
/// tells, less what it adds now. Never negative: what a point adds is convex in each of its goals.
std::optional<std::pair<std::size_t, double>> Tradeoff::best_replicate(
    const std::vector<ConfigurationEvidence>& evidence, double noise_variance) const {
    std::optional<std::pair<std::size_t, double>> result;
    for (std::size_t i = 0; i < evidence.size(); ++i) {
        if (!evidence[i].passes || evidence[i].pending) continue;
        const std::vector<std::vector<double>> others = passing_means(evidence, at_evidence_, i);
        if (others.empty()) continue;
        const FrontValue beside(others, reference_, weights_);
        std::vector<Prediction> moved;
        std::vector<double> now;
        for (std::size_t k = 0; k < at_evidence_.size(); ++k) {
            const Prediction& prediction = at_evidence_[k][i];
            const double noise =
                k == 0 ? noise_variance
                       : models_[k - 1].process->experts().front().process.noise_variance();
            moved.push_back({prediction.mean, prediction.variance * prediction.variance /
                                                  (prediction.variance + noise)});
            now.push_back(prediction.mean);
        }
        const double then = std::exp(beside.log_expected_improvement(moved));
        const double change = then - beside.improvement(now);
        constexpr double rounding =
            1e-6;  // of both, that the integral of three goals and more carries
        if (change <= rounding * then) continue;
        if (const double value = std::log(change); !result || value > result->second)
            result = {i, value};
    }
    return result;
}

}  // namespace servetune
