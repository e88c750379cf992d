// SPDX-License-Identifier: Apache-2.0
#pragma once

// What effects, explanations and the outlook share: the models of a history, levels, contrasts.

#include "evidence.hpp"
#include "pending_aware_model.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/configuration.hpp"
#include "servetune/explanation.hpp"
#include "servetune/parameter.hpp"
#include "servetune/standings.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Configurations as a model takes them.
struct ModelPoints {
    std::vector<EncodedPoint> points{};
    std::vector<std::vector<PriorBelief>> beliefs{};  ///< of each point
};

/// Sums of ln(objective) over configurations, each with weights that add to 0: differences that
/// other configurations do not enter.
struct Contrasts {
    ModelPoints at{};
    Eigen::MatrixXd weights{};  ///< points x contrasts
};

/// The trials of a search and what `Bayesian` fits to them, for all that is asked of them: fitted
/// once, when it is first asked for. Whatever strategy asked the trials.
class FittedHistory {
public:
    /// `problem` must outlive it.
    FittedHistory(const Problem& problem, std::span<const Trial> trials,
                  const BayesianOptions& options);

    const Problem& problem;
    const Beliefs given_beliefs;
    const std::uint64_t seed;
    const std::vector<Trial> trials;  ///< of the search
    const Beliefs beliefs;            ///< fitted to the trials
    const LevelGeometry geometry;
    const Standings standings;
    const EffectsFloor floor;

    /// Null below the floor.
    [[nodiscard]] const PendingAwareModel* model() const;

    // The following only above the floor.

    [[nodiscard]] ModelPoints points_of(std::span<const Configuration> configurations) const;
    void add(const Configuration& one, ModelPoints& to) const;
    /// The posterior means of ln(objective), standardised (more is better).
    [[nodiscard]] Eigen::VectorXd means(const ModelPoints& at) const;
    /// Of each expert of the model its weight, means and joint covariance at these points, without
    /// noise. O(experts (points^2 + n points)).
    [[nodiscard]] std::vector<std::pair<double, JointPrediction>> joint(
        const ModelPoints& at) const;
    /// The joint posterior of contrasts, standardised, without noise: exact for each expert, W'm
    /// and W'CW with C the joint posterior covariance, and mixed.
    [[nodiscard]] JointPrediction posterior_of(const Contrasts& contrasts) const;
    /// A difference of standardised logarithms as a gain: 0.02 is 2 % better. It is one of
    /// `together` intervals that hold with 95 % all at once (Bonferroni): of sixteen that hold with
    /// 95 % each, one excludes 0 in half of the studies where nothing differs.
    [[nodiscard]] CredibleInterval as_gain(const Prediction& difference,
                                           std::size_t together) const;

private:
    mutable std::once_flag fitted_{};
    mutable std::optional<const PendingAwareModel> model_{};
};

/// One level of a parameter, of `shown` that are looked at.
struct ShownLevel {
    const Parameter* parameter = nullptr;
    Value level{};
    std::size_t shown = 0;
};

/// Whether a configuration has this level. A real, or an integer of more levels than are shown, has
/// the level that is nearest to it.
[[nodiscard]] bool holds(const Configuration& configuration, const ShownLevel& wanted);

/// How many configurations with a number have all of these levels.
[[nodiscard]] std::size_t measured_with(const std::vector<ConfigurationEvidence>& evidence,
                                        const std::vector<ShownLevel>& levels);

/// Levels that cannot be served, as far as is known: each configuration with them that was tried
/// failed by itself or broke a limit, while others pass. What their figure gained is no gain.
class RefusedLevels {
public:
    /// `standings` and the parameters of `levels` must outlive it.
    RefusedLevels(const Standings& standings, std::vector<ShownLevel> levels)
        : standings_(standings), refused_(std::move(levels)) {
        std::erase_if(refused_, [&](const ShownLevel& one) { return why({one}).empty(); });
    }

    /// Of levels together. Empty: some configuration passes, none was tried, or nothing passes at
    /// all.
    [[nodiscard]] std::string why(const std::vector<ShownLevel>& levels) const;
    /// Of configurations those that have no refused level; where none is left those that passed,
    /// which have none.
    [[nodiscard]] std::vector<Configuration> without(
        std::vector<Configuration> configurations) const;

private:
    const Standings& standings_;
    std::vector<ShownLevel> refused_;
};

/// Some configurations, a row each, and what becomes of them when one or a few parameters are set
/// to this or that, a cell each: how those parameters act where everything else is alike. Cells
/// that are not feasible are left out of their row.
class VariantGrid {
public:
    /// The first `most_rows` of the sample in which the parameters of the cells are active and at
    /// least two cells feasible.
    VariantGrid(const FittedHistory& fitted, const std::vector<Configuration>& sample,
                std::vector<Assignment> cells, std::size_t most_rows);

    [[nodiscard]] const std::vector<Assignment>& cells() const { return cells_; }
    [[nodiscard]] std::size_t size() const { return rows_.size(); }
    /// How many of the first rows have each cell.
    [[nodiscard]] Eigen::VectorXd counts(std::size_t rows) const;
    /// Of each cell the average, over the rows that have it, of its value less the average of its
    /// row, and sums of these (`sums`: cells x contrasts). Of the first rows, of which the points
    /// are at most `most`, eight rows at least.
    [[nodiscard]] Contrasts contrasts(const Eigen::MatrixXd& sums, std::size_t most) const;
    /// The same averages by the model's means, of all rows.
    [[nodiscard]] Eigen::VectorXd averages() const;

private:
    using Row = std::vector<std::optional<Configuration>>;

    const FittedHistory* fitted_;
    std::vector<Assignment> cells_;
    std::vector<Row> rows_{};
};

}  // namespace servetune
