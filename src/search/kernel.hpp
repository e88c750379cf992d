// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigen.hpp"
#include "level_geometry.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace servetune {

/// Matern-5/2 of a squared distance in length scales: (1 + q + q^2/3) exp(-q), q = sqrt(5 r2).
/// Rasmussen and Williams, GPML (2006), eq. 4.17.
inline double matern52(double r2) {
    const double q = std::sqrt(5 * r2);
    return (1 + q + q * q / 3) * std::exp(-q);
}
/// The same of a whole matrix, by Eigen's exponential, several at once.
inline Eigen::MatrixXd matern52(const Eigen::MatrixXd& r2) {
    const Eigen::ArrayXXd q = (5 * r2.array()).sqrt();
    return (1 + q + q.square() / 3) * (-q).exp();
}
/// Its derivative by r2: -(5/6) (1 + q) exp(-q). Finite at 0.
inline double matern52_slope(double r2) {
    const double q = std::sqrt(5 * r2);
    return -5.0 / 6.0 * (1 + q) * std::exp(-q);
}

/// The covariance of the part of an objective that no regressor explains:
///
///     k(x, x') = s_p^2 M(sum_d T_d / l_d^2)  +  s_a^2 / D  sum_d M(T_d / l_d^2)
///
/// M: Matern-5/2, T_d: squared distances of LevelGeometry. The product lets parameters interact;
/// the additive part (0 where it is not wanted) learns main effects from few data (Duvenaud,
/// Nickisch, Rasmussen, Additive Gaussian Processes, NeurIPS 2011).
struct KernelParameters {
    Eigen::VectorXd inverse_squared_lengths{};  ///< 1 / l_d^2, one for each dimension
    double product_variance = 0.5;              ///< s_p^2
    double additive_variance = 0;               ///< s_a^2

    [[nodiscard]] double prior_variance() const { return product_variance + additive_variance; }
};

/// Squared distances between two lists of points, one matrix for each dimension.
using DistanceTables = std::vector<Eigen::MatrixXd>;

/// |a| x |b| for each dimension. O(|a| |b| D).
inline DistanceTables distance_tables(const LevelGeometry& geometry,
                                      const std::vector<EncodedPoint>& a,
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

/// k between the points of the tables. O(rows cols D). `rows`, `cols` for a space without
/// dimensions, where k is the variance everywhere.
inline Eigen::MatrixXd covariance(const DistanceTables& tables, const KernelParameters& parameters,
                                  Eigen::Index rows, Eigen::Index cols) {
    if (tables.empty()) return Eigen::MatrixXd::Constant(rows, cols, parameters.prior_variance());
    Eigen::MatrixXd r2 = Eigen::MatrixXd::Zero(rows, cols);
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(rows, cols);
    const bool additive = parameters.additive_variance > 0;
    for (std::size_t d = 0; d < tables.size(); ++d) {
        const double inverse = parameters.inverse_squared_lengths(static_cast<Eigen::Index>(d));
        r2 += inverse * tables[d];
        if (additive) sum += matern52(Eigen::MatrixXd(inverse * tables[d]));
    }
    Eigen::MatrixXd result = parameters.product_variance * matern52(r2);
    if (additive) result += parameters.additive_variance / static_cast<double>(tables.size()) * sum;
    return result;
}

}  // namespace servetune
