// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigen.hpp"
#include "feasibility.hpp"
#include "gaussian_process.hpp"
#include "level_geometry.hpp"
#include "servetune/configuration.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace servetune {

/// Configurations to choose from, as columns of levels: one list for each dimension, so that
/// scoring runs along the memory. 2 bytes a level: 24 MB for a million configurations of twelve
/// dimensions. Positions of continuous dimensions beside them.
class CandidatePool {
public:
    explicit CandidatePool(const LevelGeometry& geometry)
        : levels_(geometry.dimensions()), positions_(geometry.dimensions()) {}

    void add(const LevelGeometry& geometry, const EncodedPoint& point) {
        for (std::size_t d = 0; d < levels_.size(); ++d) {
            levels_[d].push_back(static_cast<std::uint16_t>(point.levels[d]));
            if (geometry.continuous(d))
                positions_[d].push_back(static_cast<float>(point.positions[d]));
        }
        ++size_;
    }
    /// Some of another pool, in their order there.
    CandidatePool(const CandidatePool& all, const std::vector<std::size_t>& some)
        : levels_(all.levels_.size()), positions_(all.levels_.size()), size_(some.size()) {
        for (std::size_t d = 0; d < levels_.size(); ++d)
            for (const std::size_t i : some) {
                levels_[d].push_back(all.levels_[d][i]);
                if (!all.positions_[d].empty()) positions_[d].push_back(all.positions_[d][i]);
            }
    }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] EncodedPoint point(std::size_t i) const {
        EncodedPoint result;
        for (std::size_t d = 0; d < levels_.size(); ++d) {
            result.levels.push_back(levels_[d][i]);
            result.positions.push_back(positions_[d].empty() ? 0 : double(positions_[d][i]));
        }
        return result;
    }
    [[nodiscard]] const std::vector<std::uint16_t>& levels(std::size_t dimension) const {
        return levels_[dimension];
    }

private:
    std::vector<std::vector<std::uint16_t>> levels_;
    std::vector<std::vector<float>> positions_;
    std::size_t size_ = 0;
};

/// A posterior as predict_pool needs it: mean(x) = h(x)'b + k(x)'weights, variance(x) = prior -
/// |half k(x)|^2, k(x) the covariances with n points, those of the regressors h included. Where
/// there are more than `most_seen` the variance knows an even part of them only, `seen`, and is
/// larger than the posterior's: good enough to rank, where all would cost O(n^2) for each
/// candidate.
struct PoolModel {
    static constexpr std::size_t most_seen = 256;

    const std::vector<EncodedPoint>& points;  ///< n
    KernelParameters kernel{};
    double additive_variance = 0;      ///< of all dimensions together, beside the product's
    double additive_stretch = 1;       ///< of 1 / l_d^2 in the additive part
    Eigen::VectorXd weights{};         ///< n
    std::vector<Eigen::Index> seen{};  ///< the observations that the variance knows
    Eigen::MatrixXd half{};            ///< seen x seen, lower triangular
    Eigen::MatrixXd regressors{};
    Eigen::VectorXd coefficient_mean{};
    Eigen::VectorXd coefficient_variance{};
    Eigen::VectorXd covariance_weights{};  ///< n, or empty: of GaussianProcess::covariance_weights

    static PoolModel of(const GaussianProcess& process) {
        return of(process, process.data().points.size());
    }
    /// The variance knows all that were appended to the first `before`, and of those what it knew
    /// before: it only shrinks.
    static PoolModel of(const GaussianProcess& process, std::size_t before) {
        const Observations& data = process.data();
        std::vector<Eigen::Index> seen = even_part(before, most_seen);
        for (std::size_t i = before; i < data.points.size(); ++i)
            seen.push_back(static_cast<Eigen::Index>(i));
        return {data.points,
                process.kernel(),
                0,
                1,
                process.weights(),
                seen,
                inverse_factor(process.factor(), seen),
                data.regressors,
                data.coefficient_mean,
                data.coefficient_variance};
    }
    /// The latent of what works, before its probit and without what is known of a configuration
    /// beforehand.
    static PoolModel of(const FeasibilityModel& model) {
        Eigen::MatrixXd regressors = Eigen::MatrixXd::Zero(model.margins().size(), 2);
        regressors.col(1) = model.margins();
        const std::vector<Eigen::Index> seen = even_part(model.points().size(), most_seen);
        return {model.points(),
                model.kernel(),
                model.prior_variance() - FeasibilityModel::product_variance,
                model.additive_stretch(),
                model.weights(),
                seen,
                inverse_factor(model.factor(), seen) * model.root_weights()(seen).asDiagonal(),
                std::move(regressors),
                Eigen::Vector2d(model.prior_mean(), 1),
                Eigen::Vector2d(0, FeasibilityModel::margin_variance)};
    }

private:
    /// Of the rows and columns `seen` of factor factor'.
    static Eigen::MatrixXd inverse_factor(const Eigen::MatrixXd& factor,
                                          const std::vector<Eigen::Index>& seen) {
        const auto n = static_cast<Eigen::Index>(seen.size());
        Eigen::MatrixXd own = factor;
        if (n < factor.rows()) {
            const Eigen::MatrixXd rows = factor(seen, Eigen::all);
            own = Eigen::LLT<Eigen::MatrixXd>(rows * rows.transpose()).matrixL();
        }
        return own.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(n, n));
    }
};

struct PoolPredictions {
    Eigen::VectorXf means;
    Eigen::VectorXf variances;
    /// with the observation that the model's covariance weights are of; empty: they are not given
    Eigen::VectorXf covariances{};
};

/// Means and variances over a whole pool, in single precision: good to 1e-4 of the prior's standard
/// deviation, enough to rank; the best are to be predicted again in double. O(N n (D + n)), in
/// blocks that stay in the cache. What is not a table (continuous dimensions) is looked up point by
/// point. `regressors`: pool x p, or empty where all are ones.
[[nodiscard]] PoolPredictions predict_pool(const PoolModel& model, const LevelGeometry& geometry,
                                           const CandidatePool& pool,
                                           const Eigen::MatrixXf& regressors);

}  // namespace servetune
