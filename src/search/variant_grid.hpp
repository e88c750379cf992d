// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "contrast.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace servetune {

/// Some configurations, a row each, and what becomes of them when one or a few parameters are set
/// to this or that, a cell each: how those parameters act where everything else is alike. Cells
/// that are not feasible are left out of their row.
class VariantGrid {
public:
    /// The first `most_rows` of the sample in which the parameters of the cells are active and at
    /// least two cells feasible.
    VariantGrid(const Problem& problem, const std::vector<Configuration>& sample,
                std::vector<Assignment> cells, std::size_t most_rows);

    [[nodiscard]] const std::vector<Assignment>& cells() const { return cells_; }
    [[nodiscard]] std::size_t size() const { return rows_.size(); }
    /// Only its first rows, of which the points are at most `most`, eight rows at least.
    [[nodiscard]] VariantGrid shortened(std::size_t most) const {
        VariantGrid result = *this;
        result.rows_.resize(std::min(rows_.size(), std::max<std::size_t>(most / cells_.size(), 8)));
        return result;
    }

    /// Of each cell the average, over the rows that have it, of its value less the average of its
    /// row; and how many rows have it.
    struct Averages {
        Eigen::VectorXd values{};
        Eigen::VectorXd counts{};
    };
    /// By the model's means.
    [[nodiscard]] Averages averages(const PendingAwareModel& model, const LevelGeometry& geometry,
                                    const Beliefs& beliefs) const;
    /// The same averages, and sums of them (`sums`: cells x contrasts), as sums over
    /// configurations.
    [[nodiscard]] Contrasts contrasts(const Eigen::MatrixXd& sums, const LevelGeometry& geometry,
                                      const Beliefs& beliefs) const;

private:
    using Row = std::vector<std::optional<Configuration>>;

    std::vector<Assignment> cells_;
    std::vector<Row> rows_{};
};

/// The posterior means of ln(objective), standardised, in single precision (1e-4 of the prior's
/// standard deviation) by all experts.
[[nodiscard]] std::vector<double> means_of(const PendingAwareModel& model,
                                           const LevelGeometry& geometry, const Beliefs& beliefs,
                                           const std::vector<Configuration>& configurations);

}  // namespace servetune
