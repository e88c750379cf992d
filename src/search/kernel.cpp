// SPDX-License-Identifier: Apache-2.0
#include "kernel.hpp"

namespace servetune {

DistanceTables distance_tables(const LevelGeometry& geometry, const std::vector<EncodedPoint>& a,
                               const std::vector<EncodedPoint>& b) {
    DistanceTables result;
    result.reserve(geometry.dimensions());
    for (std::size_t d = 0; d < geometry.dimensions(); ++d) {
        Eigen::MatrixXd& table = result.emplace_back(a.size(), b.size());
        for (std::size_t j = 0; j < b.size(); ++j)
            for (std::size_t i = 0; i < a.size(); ++i)
                table(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
                    geometry.squared_distance(d, a[i], b[j]);
    }
    return result;
}

Eigen::MatrixXd covariance(const LevelGeometry& geometry, const std::vector<EncodedPoint>& seen,
                           const std::vector<EncodedPoint>& others,
                           const KernelParameters& parameters) {
    Eigen::MatrixXd squared = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(seen.size()),
                                                    static_cast<Eigen::Index>(others.size()));
    std::vector<LevelColumns> scaled = LevelColumns::of_all(geometry, seen);
    for (std::size_t j = 0; j < others.size(); ++j)
        for (std::size_t d = 0; d < scaled.size(); ++d) {
            const double inverse = parameters.inverse_squared_lengths(static_cast<Eigen::Index>(d));
            scaled[d].add(
                others[j],
                [&](const EncodedPoint& point) {
                    return inverse * geometry.squared_distance(d, point, others[j]);
                },
                squared.col(static_cast<Eigen::Index>(j)));
        }
    return parameters.product_variance * matern52(squared);
}

}  // namespace servetune
