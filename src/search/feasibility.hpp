// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/probability.hpp"
#include "eigen.hpp"
#include "kernel.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace servetune {

/// The chance that a configuration gives a number at all: a Gaussian process behind a probit,
/// fitted by Laplace's method (Rasmussen and Williams, GPML, section 3.4 and algorithm 3.1).
///
///     P(works | x) = Phi(mu(x) / sqrt(1 + s^2(x))),
///     k = sum_d M(T_d / l^2) + M(sum_d T_d / (D l^2)),   mean: a constant
///
/// The additive part lets one parameter at fault be found from few crashes; the product part, that
/// a combination is. A margin m that is known beforehand adds b m to the latent, b ~ N(1,
/// margin_sd^2) integrated out: knowledge that is wrong, even the wrong way round, is outweighed by
/// what is seen.
class FeasibilityModel {
public:
    static constexpr double prior_feasible =
        0.7;  ///< a third of the configurations of the published spaces crash
    static constexpr double additive_variance = 1;  ///< of each dimension
    static constexpr double product_variance = 1;
    /// of each dimension in the additive part: 1/sqrt(3); neighbours on a scale tell of each other
    static constexpr double length = 0.58;
    /// of the coefficient of what is known beforehand, around 1: a few answers the other way
    /// outweigh it
    static constexpr double margin_sd = 2;
    static constexpr double margin_variance = margin_sd * margin_sd;

    /// `geometry` must outlive it. `works`: one for each point. `margins`: what is known of each
    /// beforehand, in standard deviations of the latent (a memory model's); empty: nothing.
    FeasibilityModel(const LevelGeometry& geometry, std::vector<EncodedPoint> points,
                     const std::vector<bool>& works, const std::vector<double>& margins = {})
        : geometry_(&geometry), dimensions_(geometry.dimensions()), points_(std::move(points)) {
        if (works.size() != points_.size() || (!margins.empty() && margins.size() != works.size()))
            throw UsageError("a model of what works needs as many answers as points");
        const auto n = static_cast<Eigen::Index>(points_.size());
        labels_.resize(n);
        margins_ = Eigen::VectorXd::Zero(n);
        for (Eigen::Index i = 0; i < n; ++i) {
            labels_(i) = works[std::size_t(i)] ? 1 : -1;
            if (!margins.empty()) margins_(i) = margins[std::size_t(i)];
        }
        mean_ = prior_mean() + margins_.array();
        for (std::size_t d = 0; d < dimensions_; ++d)
            alone_.push_back(additive_variance *
                             matern52(Eigen::MatrixXd(inverse_squared_length * geometry.table(d))));
        fit(with_margins(covariances(points_), margins_));
    }

    [[nodiscard]] const std::vector<EncodedPoint>& points() const { return points_; }
    [[nodiscard]] double prior_variance() const {
        return double(dimensions_) * additive_variance + product_variance;
    }
    /// Of the product part; lengths of the additive part are shorter by sqrt(additive_stretch()).
    [[nodiscard]] KernelParameters kernel() const {
        const double product = inverse_squared_length / additive_stretch();
        return {Eigen::VectorXd::Constant(static_cast<Eigen::Index>(dimensions_), product),
                product_variance};
    }
    [[nodiscard]] double additive_stretch() const {
        return double(std::max<std::size_t>(dimensions_, 1));
    }
    /// Of the posterior's mean: k(x)'weights above the prior's; and of its variance: prior - |L^-1
    /// R k(x)|^2, L the factor, R diagonal.
    [[nodiscard]] const Eigen::VectorXd& weights() const { return gradient_; }
    [[nodiscard]] const Eigen::MatrixXd& factor() const { return factor_; }
    [[nodiscard]] const Eigen::VectorXd& root_weights() const { return root_weights_; }
    /// Chosen so that a configuration of which nothing is known works with the prior's chance.
    [[nodiscard]] double prior_mean() const {
        return normal_quantile(prior_feasible) * std::sqrt(1 + prior_variance());
    }

    /// At some points. `margins`: one each.
    [[nodiscard]] Eigen::VectorXd probabilities(const std::vector<EncodedPoint>& others,
                                                const Eigen::VectorXd& margins) const {
        const Eigen::Index m = margins.size();
        const Eigen::MatrixXd cross = with_margins(covariances(others), margins);
        const Eigen::VectorXd latent =
            (prior_mean() + margins.array()).matrix() + cross.transpose() * gradient_;
        Eigen::VectorXd result(m);
        Eigen::MatrixXd half;
        if (!points_.empty() && m > 0)
            half = factor_.triangularView<Eigen::Lower>().solve(root_weights_.asDiagonal() * cross);
        for (Eigen::Index j = 0; j < m; ++j) {
            const double prior = prior_variance() + margin_variance * margins(j) * margins(j);
            const double variance =
                std::max(prior - (points_.empty() ? 0 : half.col(j).squaredNorm()), 0.0);
            result(j) = normal_cdf(latent(j), 1 + variance);
        }
        return result;
    }

    [[nodiscard]] const Eigen::VectorXd& margins() const { return margins_; }  ///< of the points

private:
    static constexpr double inverse_squared_length = 1 / (length * length);  ///< additive

    [[nodiscard]] Eigen::MatrixXd with_margins(Eigen::MatrixXd k,
                                               const Eigen::VectorXd& others) const {
        k.noalias() += margin_variance * margins_ * others.transpose();
        return k;
    }
    /// n x m.
    [[nodiscard]] Eigen::MatrixXd covariances(const std::vector<EncodedPoint>& others) const {
        Eigen::MatrixXd additive = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(points_.size()),
                                                         static_cast<Eigen::Index>(others.size()));
        std::vector<LevelColumns> single = LevelColumns::of_all(*geometry_, points_);
        for (std::size_t j = 0; j < others.size(); ++j)
            for (std::size_t d = 0; d < dimensions_; ++d) {
                const auto of_dimension = [&](const EncodedPoint& point) {
                    return geometry_->continuous(d)
                               ? additive_variance *
                                     matern52(inverse_squared_length *
                                              geometry_->squared_distance(d, point, others[j]))
                               : alone_[d](point.levels[d], others[j].levels[d]);
                };
                single[d].add(others[j], of_dimension, additive.col(static_cast<Eigen::Index>(j)));
            }
        return additive + covariance(*geometry_, points_, others, kernel());
    }

    /// Newton's method for the mode f of the latent (GPML algorithm 3.1, eq. 3.16 for the probit);
    /// f - mean = K gradient.
    void fit(const Eigen::MatrixXd& k) {
        const Eigen::Index n = labels_.size();
        gradient_ = Eigen::VectorXd::Zero(n);
        root_weights_ = Eigen::VectorXd::Zero(n);
        Eigen::VectorXd f = mean_;
        constexpr int steps = 50;
        for (int step = 0; step < steps; ++step) {
            Eigen::VectorXd slope(n);
            Eigen::VectorXd curvature(n);
            for (Eigen::Index i = 0; i < n; ++i) {
                const double z = labels_(i) * f(i);
                const double mills = inverse_mills(z);
                slope(i) = labels_(i) * mills;
                curvature(i) = mills * (mills + z);
            }
            root_weights_ = curvature.cwiseMax(0).cwiseSqrt();
            Eigen::MatrixXd b = root_weights_.asDiagonal() * k * root_weights_.asDiagonal();
            b.diagonal().array() += 1;
            const Eigen::LLT<Eigen::MatrixXd> llt(b);
            factor_ = llt.matrixL();
            const Eigen::VectorXd right = curvature.cwiseProduct(f - mean_) + slope;
            gradient_ = right - root_weights_.cwiseProduct(
                                    llt.solve(root_weights_.cwiseProduct(k * right)));
            const Eigen::VectorXd next = mean_ + k * gradient_;
            const double moved = n > 0 ? (next - f).cwiseAbs().maxCoeff() : 0;
            f = next;
            if (moved < 1e-9) break;
        }
    }

    const LevelGeometry* geometry_;
    std::size_t dimensions_;
    std::vector<EncodedPoint> points_;
    std::vector<Eigen::MatrixXd>
        alone_{};  ///< of each dimension the additive part's covariances, level by level
    Eigen::VectorXd labels_{};
    Eigen::VectorXd margins_{};
    Eigen::VectorXd mean_{};
    Eigen::VectorXd gradient_{};
    Eigen::VectorXd root_weights_{};
    Eigen::MatrixXd factor_{};
};

}  // namespace servetune
