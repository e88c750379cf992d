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

/// The trials of a search and what `Bayesian` fits to them, for all that is asked of them: fitted
/// once, when it is first asked for. Whatever strategy asked the trials.
class FittedHistory {
public:
    /// `problem` and `bayesian` must outlive it. `beliefs`: those of `bayesian`'s options.
    FittedHistory(const Problem& problem, std::span<const Trial> trials, const Bayesian& bayesian,
                  const Beliefs& beliefs);

    const Problem& problem;
    const Bayesian& bayesian;
    const std::vector<Trial> trials;  ///< of the search
    const Beliefs beliefs;            ///< fitted to the trials
    const LevelGeometry geometry;
    const Standings standings;
    const EffectsFloor floor;

    /// Null below the floor.
    [[nodiscard]] const PendingAwareModel* model() const;

private:
    mutable std::once_flag fitted_{};
    mutable std::optional<const PendingAwareModel> model_{};
};

/// One level of a parameter, of `shown` that are looked at.
struct ShownLevel {
    const Parameter& parameter;
    const Value& level;
    std::size_t shown = 0;
};

/// Whether a configuration has this level. A real, or an integer of more levels than are shown, has
/// the level that is nearest to it.
inline bool holds(const Configuration& configuration, const ShownLevel& wanted) {
    const Value* value = configuration.find(wanted.parameter.name);
    if (value == nullptr) return false;
    if (*value == wanted.level) return true;
    const bool thinned = wanted.parameter.continuous() ||
                         (std::holds_alternative<IntegerDomain>(wanted.parameter.domain) &&
                          wanted.parameter.level_count() > wanted.shown);
    const auto is = number_of(*value);
    const auto should = number_of(wanted.level);
    if (!thinned || !is || !should || wanted.shown < 2) return false;
    const double half_step = 0.5 / static_cast<double>(wanted.shown - 1);
    return std::abs(wanted.parameter.position_of(*is) - wanted.parameter.position_of(*should)) <=
           half_step;
}

/// How many configurations with a number have all of these levels.
inline std::size_t measured_with(const std::vector<ConfigurationEvidence>& evidence,
                                 const std::vector<ShownLevel>& levels) {
    return static_cast<std::size_t>(
        std::count_if(evidence.begin(), evidence.end(), [&](const ConfigurationEvidence& entry) {
            return entry.measured() &&
                   std::all_of(levels.begin(), levels.end(), [&](const ShownLevel& level) {
                       return holds(entry.configuration, level);
                   });
        }));
}

/// Levels that cannot be served, as far as is known: each configuration with them that was tried
/// failed by itself or broke a limit, while others pass. What their figure gained is no gain.
class RefusedLevels {
public:
    /// `standings` and the parameters of `levels` must outlive it.
    RefusedLevels(const Standings& standings, const std::vector<ShownLevel>& levels)
        : standings_(standings) {
        for (const ShownLevel& one : levels)
            if (!why({one}).empty()) refused_.push_back({&one.parameter, one.level, one.shown});
    }

    /// Of levels together. Empty: some configuration passes, none was tried, or nothing passes at
    /// all.
    [[nodiscard]] std::string why(const std::vector<ShownLevel>& levels) const {
        std::string result;
        std::size_t tried = 0;
        bool any_passes = false;
        for (const Standing& standing : standings_.all()) {
            any_passes = any_passes || standing.passes();
            const bool has = std::all_of(
                levels.begin(), levels.end(),
                [&](const ShownLevel& level) { return holds(standing.configuration, level); });
            if (!has || !told_of_itself(standing)) continue;
            if (standing.passes() || standing.refusal == Refusal::slower) return "";
            if (tried++ == 0) result = standing.refused;
        }
        if (!any_passes) return "";
        return tried > 1 ? result + " (the first of " + std::to_string(tried) + " configurations)"
                         : result;
    }
    /// Whether a configuration has one of the levels that are refused.
    [[nodiscard]] bool in(const Configuration& configuration) const {
        return std::any_of(refused_.begin(), refused_.end(), [&](const Kept& one) {
            return holds(configuration, {*one.parameter, one.level, one.shown});
        });
    }
    /// Of configurations those that have no refused level; where none is left those that passed,
    /// which have none.
    [[nodiscard]] std::vector<Configuration> without(
        std::vector<Configuration> configurations) const {
        std::erase_if(configurations, [&](const Configuration& one) { return in(one); });
        if (configurations.empty())
            for (const Standing& standing : standings_.all())
                if (standing.passes()) configurations.push_back(standing.configuration);
        return configurations;
    }

private:
    struct Kept {
        const Parameter* parameter = nullptr;
        Value level;
        std::size_t shown = 0;
    };

    /// A failure that was not its own tells nothing of a configuration.
    static bool told_of_itself(const Standing& standing) {
        return std::any_of(standing.trials.begin(), standing.trials.end(), [](const Trial* trial) {
            return trial->measurement() != nullptr ||
                   (trial->failure() != nullptr && teaches(trial->failure()->kind));
        });
    }

    const Standings& standings_;
    std::vector<Kept> refused_{};
};

/// Sums of ln(objective) over configurations, each with weights that add to 0: differences that
/// other configurations do not enter.
struct Contrasts {
    std::vector<EncodedPoint> points{};
    std::vector<std::vector<PriorBelief>> beliefs{};  ///< of each point
    Eigen::MatrixXd weights{};                        ///< points x contrasts
};

/// The posterior of each contrast by the model of the objective, standardised (more is better),
/// without noise: exact for each expert, w'm and w'Cw with C the joint posterior covariance, and
/// mixed. O(experts (points^2 + n points)).
[[nodiscard]] std::vector<Prediction> posterior_of(const PendingAwareModel& model,
                                                   const LevelGeometry& geometry,
                                                   const Contrasts& contrasts);

/// A difference of standardised logarithms as a gain: 0.02 is 2 % better. It is one of `together`
/// intervals that hold with 95 % all at once (Bonferroni): of sixteen that hold with 95 % each, one
/// excludes 0 in half of the studies where nothing differs.
[[nodiscard]] CredibleInterval as_gain(const PendingAwareModel& model, const Prediction& difference,
                                       std::size_t together);

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
