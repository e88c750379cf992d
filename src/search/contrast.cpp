// SPDX-License-Identifier: Apache-2.0
#include "contrast.hpp"

#include "base/probability.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace servetune {

std::vector<Prediction> posterior_of(const PendingAwareModel& model, const LevelGeometry& geometry,
                                     const Contrasts& contrasts) {
    const Eigen::Index count = contrasts.weights.cols();
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(count);
    Eigen::VectorXd square = Eigen::VectorXd::Zero(count);
    const Eigen::MatrixXd believed = model.believed(contrasts.beliefs);
    const auto& experts = model.objective().experts();
    const DistanceTables to_data =
        distance_tables(geometry, experts.front().process.data().points, contrasts.points);
    const DistanceTables among = distance_tables(geometry, contrasts.points, contrasts.points);
    for (const Expert& expert : experts) {
        const Eigen::MatrixXd regressors = Surrogate::regressors(expert, believed);
        const std::vector<Prediction> predictions = expert.process.predict(to_data, regressors);
        Eigen::VectorXd means(contrasts.weights.rows());
        for (Eigen::Index i = 0; i < means.size(); ++i)
            means(i) = predictions[static_cast<std::size_t>(i)].mean;
        const Eigen::MatrixXd covariance =
            expert.process.posterior_covariance(to_data, among, regressors);
        const Eigen::VectorXd own = contrasts.weights.transpose() * means;
        const Eigen::VectorXd variances =
            contrasts.weights.cwiseProduct(covariance * contrasts.weights)
                .colwise()
                .sum()
                .transpose();
        mean += expert.weight * own;
        square += expert.weight * (variances.cwiseMax(0.0) + own.cwiseAbs2());
    }
    std::vector<Prediction> result;
    for (Eigen::Index j = 0; j < count; ++j)
        result.push_back({mean(j), std::max(square(j) - mean(j) * mean(j), 0.0)});
    return result;
}

CredibleInterval as_gain(const PendingAwareModel& model, const Prediction& difference,
                         std::size_t together) {
    const double spread = model.scale().spread();
    const double beyond =
        0.025 / static_cast<double>(std::max<std::size_t>(together, 1));  // on either side
    const double reach = -normal_quantile(beyond) * std::sqrt(difference.variance);
    return {std::expm1(spread * difference.mean), std::expm1(spread * (difference.mean - reach)),
            std::expm1(spread * (difference.mean + reach))};
}

}  // namespace servetune
