// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigen.hpp"
#include "kernel.hpp"
#include "level_geometry.hpp"

#include <cstddef>
#include <vector>

namespace servetune {

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

/// As `covariance` of the distance tables between `seen` and `others`, without the tables.
[[nodiscard]] Eigen::MatrixXd covariance(const LevelGeometry& geometry,
                                         const std::vector<EncodedPoint>& seen,
                                         const std::vector<EncodedPoint>& others,
                                         const KernelParameters& parameters);

}  // namespace servetune
