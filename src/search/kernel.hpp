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
///     k(x, x') = s_p^2 M(sum_d T_d / l_d^2)
///
/// M: Matern-5/2, T_d: squared distances of LevelGeometry.
struct KernelParameters {
    Eigen::VectorXd inverse_squared_lengths{};  ///< 1 / l_d^2, one for each dimension
    double product_variance = 0.5;              ///< s_p^2
};

/// Squared distances between two lists of points, one matrix for each dimension.
using DistanceTables = std::vector<Eigen::MatrixXd>;

/// |a| x |b| for each dimension. O(|a| |b| D).
[[nodiscard]] DistanceTables distance_tables(const LevelGeometry& geometry,
                                             const std::vector<EncodedPoint>& a,
                                             const std::vector<EncodedPoint>& b);

/// A number for each of n observed points and any other one that depends on their levels in one
/// dimension, such as their distance there: a column of n for each level of the other, made when
/// the level is first met. Adding it takes n additions a dimension and candidate. Tables of all
/// distances (`distance_tables`) of thousands of candidates take hundreds of megabytes.
class LevelColumns {
public:
    /// Both must outlive it.
    LevelColumns(const LevelGeometry& geometry, std::size_t dimension,
                 const std::vector<EncodedPoint>& seen)
        : dimension_(dimension),
          continuous_(geometry.continuous(dimension)),
          seen_(&seen),
          made_(geometry.level_count(dimension), false),
          columns_(static_cast<Eigen::Index>(continuous_ ? 0 : seen.size()),
                   static_cast<Eigen::Index>(geometry.level_count(dimension))) {}

    /// Adds to `sums` what `with(point)` says of each observed point and `other`.
    template <class With, class Column>
    void add(const EncodedPoint& other, const With& with, Column&& sums) {
        if (continuous_) {
            for (std::size_t i = 0; i < seen_->size(); ++i)
                sums(static_cast<Eigen::Index>(i)) += with((*seen_)[i]);
            return;
        }
        const std::size_t level = other.levels[dimension_];
        auto column = columns_.col(static_cast<Eigen::Index>(level));
        if (!made_[level])
            for (std::size_t i = 0; i < seen_->size(); ++i)
                column(static_cast<Eigen::Index>(i)) = with((*seen_)[i]);
        made_[level] = true;
        sums += column;
    }

    [[nodiscard]] static std::vector<LevelColumns> of_all(const LevelGeometry& geometry,
                                                          const std::vector<EncodedPoint>& seen) {
        std::vector<LevelColumns> result;
        result.reserve(geometry.dimensions());
        for (std::size_t d = 0; d < geometry.dimensions(); ++d)
            result.emplace_back(geometry, d, seen);
        return result;
    }

private:
    std::size_t dimension_;
    bool continuous_;
    const std::vector<EncodedPoint>* seen_;
    std::vector<bool> made_;
    Eigen::MatrixXd columns_;
};

/// k between `seen` and `others`.
[[nodiscard]] Eigen::MatrixXd covariance(const LevelGeometry& geometry,
                                         const std::vector<EncodedPoint>& seen,
                                         const std::vector<EncodedPoint>& others,
                                         const KernelParameters& parameters);

}  // namespace servetune
