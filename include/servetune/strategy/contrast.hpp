// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/strategy/learned_model.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace servetune {

/// A number and its 95 % interval.
struct CredibleInterval {
    double value = 0;
    double low = 0;
    double high = 0;

    /// Whether it says on which side of 0 the truth is.
    [[nodiscard]] bool known() const { return low > 0 || high < 0; }
};

inline constexpr double normal_95 = 1.959963984540054;  ///< the 97.5 % point of a normal: of 95 % both ways

/// Sums of ln(objective) over configurations, each with weights that add to 0: differences that other configurations do not enter.
struct Contrasts {
    std::vector<EncodedPoint> points{};
    std::vector<std::vector<PriorBelief>> beliefs{};  ///< of each point
    Eigen::MatrixXd weights{};                        ///< points x contrasts
};

/// The posterior of each contrast by the model of the objective, standardised (more is better), without noise: exact for each expert, w'm and w'Cw with C the joint
/// posterior covariance, and mixed. O(experts (points^2 + n points)).
inline std::vector<Prediction> posterior_of(const LearnedModel& model, const LevelGeometry& geometry, const Contrasts& contrasts) {
    const Eigen::Index count = contrasts.weights.cols();
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(count);
    Eigen::VectorXd square = Eigen::VectorXd::Zero(count);
    const Eigen::MatrixXd believed = model.believed(contrasts.beliefs);
    const auto& experts = model.objective().experts();
    const DistanceTables to_data = distance_tables(geometry, experts.front().process.data().points, contrasts.points);
    const DistanceTables among = distance_tables(geometry, contrasts.points, contrasts.points);
    for (const Expert& expert : experts) {
        const Eigen::MatrixXd regressors = Surrogate::regressors(expert, believed);
        const std::vector<Prediction> predictions = expert.process.predict(to_data, regressors);
        Eigen::VectorXd means(contrasts.weights.rows());
        for (Eigen::Index i = 0; i < means.size(); ++i) means(i) = predictions[static_cast<std::size_t>(i)].mean;
        const Eigen::MatrixXd covariance = expert.process.posterior_covariance(to_data, among, regressors);
        const Eigen::VectorXd own = contrasts.weights.transpose() * means;
        const Eigen::VectorXd variances = contrasts.weights.cwiseProduct(covariance * contrasts.weights).colwise().sum().transpose();
        mean += expert.weight * own;
        square += expert.weight * (variances.cwiseMax(0.0) + own.cwiseAbs2());
    }
    std::vector<Prediction> result;
    for (Eigen::Index j = 0; j < count; ++j) result.push_back({mean(j), std::max(square(j) - mean(j) * mean(j), 0.0)});
    return result;
}

/// A difference of standardised logarithms as a gain: 0.02 is 2 % better.
inline CredibleInterval as_gain(const LearnedModel& model, const Prediction& difference) {
    const double spread = model.scale().spread();
    const double reach = normal_95 * std::sqrt(difference.variance);
    return {std::expm1(spread * difference.mean), std::expm1(spread * (difference.mean - reach)),
            std::expm1(spread * (difference.mean + reach))};
}

}  // namespace servetune
