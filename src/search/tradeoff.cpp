// SPDX-License-Identifier: Apache-2.0
#include "tradeoff.hpp"
#include "base/present.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace servetune {

Tradeoff::Tradeoff(const Problem& problem, const std::vector<ConfigurationEvidence>& evidence,
                   const Leading& leading, const LevelGeometry& geometry, double noise_cv,
                   std::uint64_t seed)
    : second_(
          learned(problem.objective.goals[1], evidence, geometry, noise_cv, derive_seed(seed, 0))) {
    std::vector<EncodedPoint> points;
    for (const ConfigurationEvidence& entry : evidence) points.push_back(entry.point);
    at_evidence_ = {leading.process.mixed(points, leading.beliefs), of_second(points)};
    const std::vector<Staircase::Point> means = passing_means(evidence, at_evidence_, none);
    if (means.empty()) return;
    constexpr double lowest = -std::numeric_limits<double>::infinity();
    const std::vector<Staircase::Point> front = Staircase(means, {lowest, lowest}).steps();
    // The first goal rises along the front, the second falls.
    const std::array<double, 2> ranges{front.back()[0] - front.front()[0],
                                       front.front()[1] - front.back()[1]};
    const Staircase::Point worst{front.front()[0], front.back()[1]};
    for (std::size_t k = 0; k < 2; ++k)
        reference_[k] = worst[k] - std::max(depth * ranges[k], least_depth);
    front_.emplace(means, reference_);
    const Eigen::MatrixXd nothing(static_cast<Eigen::Index>(points.size()), 0);
    const BothGoals weightiest{leading.process.predict(points, leading.beliefs).front(),
                               second_.predict(points, nothing).front()};
    front_by_weightiest_.emplace(passing_means(evidence, weightiest, none), reference_);
}

/// As the leading goal is learned, without knowledge.
Surrogate Tradeoff::learned(const Goal& goal, const std::vector<ConfigurationEvidence>& evidence,
                            const LevelGeometry& geometry, double noise_cv, std::uint64_t seed) {
    std::vector<double> measured;
    for (const ConfigurationEvidence& entry : evidence)
        if (entry.measured()) measured.push_back(entry.means[1]);
    const OutputScale scale(goal.direction == Direction::maximize, measured, 2 * noise_cv);
    Surrogate result(geometry, goal_data(evidence, 1, scale, noise_cv).data, seed);
    for (const ConfigurationEvidence& entry : evidence)
        if (entry.under_way()) result.believe(entry.point, Eigen::RowVectorXd(0));
    return result;
}

std::vector<Prediction> Tradeoff::of_second(const std::vector<EncodedPoint>& points) const {
    return second_.mixed(points, Eigen::MatrixXd(static_cast<Eigen::Index>(points.size()), 0));
}

std::vector<Staircase::Point> Tradeoff::passing_means(
    const std::vector<ConfigurationEvidence>& evidence, const BothGoals& goals,
    std::size_t without) {
    std::vector<Staircase::Point> result;
    for (std::size_t i = 0; i < evidence.size(); ++i)
        if (evidence[i].passes && i != without)
            result.push_back({goals[0][i].mean, goals[1][i].mean});
    return result;
}

void Tradeoff::score(const std::vector<EncodedPoint>& points,
                     std::vector<CandidateScore>& scores) const {
    const std::vector<Prediction> second = of_second(points);
    for (std::size_t i = 0; i < points.size(); ++i)
        scores[i].log_improvement =
            present(front_).log_expected_improvement(scores[i].objective, second[i]);
}

void Tradeoff::rank(const PoolPredictions& leading, const LevelGeometry& geometry,
                    const CandidatePool& pool, bool explore, Eigen::VectorXf& result) const {
    const PoolPredictions second =
        predict_pool(PoolModel::of(second_.experts().front().process), geometry, pool, {});
    const auto at = [](const PoolPredictions& goal, Eigen::Index i) {
        return Prediction{double(goal.means(i)), double(goal.variances(i))};
    };
    const auto hoped = [](const Prediction& one) { return one.mean + std::sqrt(one.variance); };
    const Staircase& front = present(front_by_weightiest_);
    for (Eigen::Index i = 0; i < result.size(); ++i) {
        const Prediction a = at(leading, i);
        const Prediction b = at(second, i);
        double score = 0;
        if (explore) {
            score = 0.5 * std::log(a.variance) + 0.5 * std::log(b.variance);
            if (!(front.improvement({hoped(a), hoped(b)}) > 0)) score -= 100;
        } else score = front.log_expected_improvement(a, b);
        result(i) = static_cast<float>(score);
    }
}

/// With one goal this is the knowledge gradient of one more sample (Frazier, Powell, Dayanik 2009):
/// what the entry is expected to add to the others once its mean has moved by what a measurement
/// tells, less what it adds now. Never negative: what a point adds is convex in each of its goals.
std::optional<std::pair<std::size_t, double>> Tradeoff::best_replicate(
    const std::vector<ConfigurationEvidence>& evidence, double noise_variance) const {
    std::optional<std::pair<std::size_t, double>> result;
    const auto moved = [](const Prediction& one, double noise) {
        return Prediction{one.mean, one.variance * one.variance / (one.variance + noise)};
    };
    for (std::size_t i = 0; i < evidence.size(); ++i) {
        if (!evidence[i].passes || evidence[i].pending) continue;
        const std::vector<Staircase::Point> others = passing_means(evidence, at_evidence_, i);
        if (others.empty()) continue;
        const Staircase beside(others, reference_);
        const Prediction& first = at_evidence_[0][i];
        const Prediction& second = at_evidence_[1][i];
        const double then = std::exp(beside.log_expected_improvement(
            moved(first, noise_variance),
            moved(second, second_.experts().front().process.noise_variance())));
        const double change = then - beside.improvement({first.mean, second.mean});
        constexpr double rounding = 1e-6;  // of both
        if (change <= rounding * then) continue;
        if (const double value = std::log(change); !result || value > result->second)
            result = {i, value};
    }
    return result;
}

}  // namespace servetune
