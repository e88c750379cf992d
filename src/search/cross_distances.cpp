// SPDX-License-Identifier: Apache-2.0
#include "cross_distances.hpp"

namespace servetune {

Eigen::MatrixXd covariance(const LevelGeometry& geometry, const std::vector<EncodedPoint>& seen,
                           const std::vector<EncodedPoint>& others,
                           const KernelParameters& parameters) {
    const auto n = static_cast<Eigen::Index>(seen.size());
    const auto m = static_cast<Eigen::Index>(others.size());
    if (geometry.dimensions() == 0)
        return Eigen::MatrixXd::Constant(n, m, parameters.prior_variance());
    const bool additive = parameters.additive_variance > 0;
    Eigen::MatrixXd squared = Eigen::MatrixXd::Zero(n, m);
    Eigen::MatrixXd alone = Eigen::MatrixXd::Zero(additive ? n : 0, additive ? m : 0);
    std::vector<LevelColumns> scaled = LevelColumns::of_all(geometry, seen);
    std::vector<LevelColumns> single =
        additive ? LevelColumns::of_all(geometry, seen) : std::vector<LevelColumns>{};
    for (Eigen::Index j = 0; j < m; ++j)
        for (std::size_t d = 0; d < scaled.size(); ++d) {
            const EncodedPoint& other = others[static_cast<std::size_t>(j)];
            const auto distance =
                [&, inverse = parameters.inverse_squared_lengths(static_cast<Eigen::Index>(d))](
                    const EncodedPoint& point) {
                    return inverse * geometry.squared_distance(d, point, other);
                };
            scaled[d].add(other, distance, squared.col(j));
            if (additive)
                single[d].add(
                    other, [&](const EncodedPoint& point) { return matern52(distance(point)); },
                    alone.col(j));
        }
    Eigen::MatrixXd result = parameters.product_variance * matern52(squared);
    if (additive)
        result += parameters.additive_variance / static_cast<double>(geometry.dimensions()) * alone;
    return result;
}

}  // namespace servetune
