// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigen.hpp"
#include "kernel.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace servetune {

/// What an exact Gaussian process is conditioned on, n observations:
///
///     y = H b + g(x) + e,   b ~ N(mean, diag(variance)),   g ~ GP(0, k),   e_i ~ N(0, s_n^2 v_i)
///
/// `H` holds the regressors: a column of ones for the level, and one for each prior mean. Their
/// coefficients are integrated out (Rasmussen and Williams, GPML, section 2.7), which adds H
/// diag(variance) H' to the covariance and H mean to the mean.
struct Observations {
    std::vector<EncodedPoint> points{};
    Eigen::VectorXd values{};                ///< y
    Eigen::VectorXd noise_factors{};         ///< v: 1 for one measurement of the usual noise
    Eigen::MatrixXd regressors{};            ///< H, n x p
    Eigen::VectorXd coefficient_mean{};      ///< p
    Eigen::VectorXd coefficient_variance{};  ///< p, not negative

    [[nodiscard]] Eigen::Index size() const { return values.size(); }
};

/// `most` of so many, evenly through their order; all where there are no more.
inline std::vector<Eigen::Index> even_part(std::size_t count, std::size_t most) {
    std::vector<Eigen::Index> result(std::min(count, most));
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = static_cast<Eigen::Index>(i * count / result.size());
    return result;
}

/// A mean and a variance of the noise-free function. Never a standard deviation that is called a
/// variance, never with the noise in it.
struct Prediction {
    double mean = 0;
    double variance = 0;
};

/// The same at several points, together.
struct JointPrediction {
    Eigen::VectorXd means{};
    Eigen::MatrixXd covariance{};
};

/// The exact posterior for given parameters. O(n^3) to make, O(n^2) for a variance.
class GaussianProcess {
public:
    /// `geometry` must outlive it. Throws UsageError where numbers are not finite or sizes differ.
    GaussianProcess(const LevelGeometry& geometry, Observations data, KernelParameters kernel,
                    double noise_variance)
        : geometry_(&geometry),
          kernel_(std::move(kernel)),
          noise_variance_(noise_variance),
          data_(std::move(data)) {
        check();
        Eigen::MatrixXd k = cross_covariance(data_.points, data_.regressors);
        k.diagonal() += noise_variance_ * data_.noise_factors;
        factorise(std::move(k));
        residual_ = data_.values - data_.regressors * data_.coefficient_mean;
        weights_ = solve(residual_);
    }

    [[nodiscard]] const KernelParameters& kernel() const { return kernel_; }
    [[nodiscard]] double noise_variance() const { return noise_variance_; }
    [[nodiscard]] const Observations& data() const { return data_; }
    [[nodiscard]] Eigen::Index size() const { return data_.size(); }
    /// L, lower triangular, of L L' = K + noise.
    [[nodiscard]] const Eigen::MatrixXd& factor() const { return factor_; }
    /// (K + noise)^-1 (y - H mean).
    [[nodiscard]] const Eigen::VectorXd& weights() const { return weights_; }

    /// Covariance of the observations with m other points, regressors included: n x m.
    /// `regressors`: m x p.
    [[nodiscard]] Eigen::MatrixXd cross_covariance(const std::vector<EncodedPoint>& points,
                                                   const Eigen::MatrixXd& regressors) const {
        return with_regressors(covariance(*geometry_, data_.points, points, kernel_),
                               data_.regressors, regressors);
    }

    /// At m points, `regressors` m x p.
    [[nodiscard]] std::vector<Prediction> predict(const std::vector<EncodedPoint>& points,
                                                  const Eigen::MatrixXd& regressors) const {
        return predict_from(cross_covariance(points, regressors), regressors);
    }
    /// The same where the cross covariance is at hand.
    [[nodiscard]] std::vector<Prediction> predict_from(const Eigen::MatrixXd& cross,
                                                       const Eigen::MatrixXd& regressors) const {
        const Eigen::VectorXd means = means_from(cross, regressors);
        const Eigen::MatrixXd half = half_solve(cross);
        std::vector<Prediction> result;
        for (Eigen::Index j = 0; j < regressors.rows(); ++j) {
            const double prior = prior_variance(regressors.row(j));
            result.push_back(
                {means(j), std::max(prior - half.col(j).squaredNorm(), least_variance(prior))});
        }
        return result;
    }
    /// Its means alone: O(n) a point where a variance takes O(n^2).
    [[nodiscard]] Eigen::VectorXd means_from(const Eigen::MatrixXd& cross,
                                             const Eigen::MatrixXd& regressors) const {
        return regressors * data_.coefficient_mean + cross.transpose() * weights_;
    }
    /// At m points, `regressors` m x p.
    [[nodiscard]] JointPrediction joint(const std::vector<EncodedPoint>& points,
                                        const Eigen::MatrixXd& regressors) const {
        const Eigen::MatrixXd cross = cross_covariance(points, regressors);
        const Eigen::MatrixXd half = half_solve(cross);
        return {means_from(cross, regressors),
                with_regressors(covariance(*geometry_, points, points, kernel_), regressors,
                                regressors) -
                    half.transpose() * half};
    }

    /// (K + noise)^-1. O(n^3).
    [[nodiscard]] Eigen::MatrixXd inverse() const {
        const Eigen::MatrixXd half = half_solve(Eigen::MatrixXd::Identity(size(), size()));
        return half.transpose() * half;
    }

    /// Leave-one-out predictions of y, noise included, from one inverse (GPML eq. 5.12).
    [[nodiscard]] std::vector<Prediction> leave_one_out() const {
        const Eigen::VectorXd precisions = inverse().diagonal();
        std::vector<Prediction> result;
        for (Eigen::Index i = 0; i < size(); ++i)
            result.push_back({data_.values(i) - weights_(i) / precisions(i), 1 / precisions(i)});
        return result;
    }

    /// The posterior of the coefficient of regressor p: b + V h' K^-1 r, V - V h' K^-1 h V.
    [[nodiscard]] Prediction coefficient(Eigen::Index p) const {
        const double prior = data_.coefficient_variance(p);
        const Eigen::VectorXd column = data_.regressors.col(p);
        const double seen = half_solve(column).squaredNorm();
        return {data_.coefficient_mean(p) + prior * column.dot(weights_),
                std::max(prior - prior * prior * seen, 0.0)};
    }

    /// With the covariances k(x) of a point with the data: k(x)'w is the posterior covariance of
    /// f(x) with f at observation i. For k(x, x_i) is k(x)'e_i, and (K + noise)^-1 (K e_i) = e_i -
    /// s_n^2 v_i (K + noise)^-1 e_i.
    [[nodiscard]] Eigen::VectorXd covariance_weights(Eigen::Index i) const {
        return noise_variance_ * data_.noise_factors(i) * solve(Eigen::VectorXd::Unit(size(), i));
    }

    /// One more observation in O(n^2) in place of O(n^3): a row of the factor (L^-1 c and what is
    /// left of its variance). `regressors`: 1 x p. A point that the others determine to rounding is
    /// given the smallest variance that the factor can hold.
    void append(const EncodedPoint& point, double value, double noise_factor,
                const Eigen::RowVectorXd& regressors) {
        if (!std::isfinite(value) || !std::isfinite(noise_factor) || !regressors.allFinite())
            throw UsageError("a Gaussian process is conditioned on finite numbers only");
        const Eigen::VectorXd row = half_solve(cross_covariance({point}, regressors));
        const Eigen::Index n = size();
        const double total = prior_variance(regressors) + noise_variance_ * noise_factor;
        factor_.conservativeResize(n + 1, n + 1);
        factor_.col(n).setZero();
        factor_.row(n).head(n) = row.transpose();
        factor_(n, n) = std::sqrt(std::max(total - row.squaredNorm(), least_variance(total)));
        data_.points.push_back(point);
        data_.values.conservativeResize(n + 1);
        data_.values(n) = value;
        data_.noise_factors.conservativeResize(n + 1);
        data_.noise_factors(n) = noise_factor;
        data_.regressors.conservativeResize(n + 1, regressors.size());
        data_.regressors.row(n) = regressors;
        residual_.conservativeResize(n + 1);
        residual_(n) = value - regressors.dot(data_.coefficient_mean);
        weights_ = solve(residual_);
    }

    [[nodiscard]] double prior_variance(const Eigen::RowVectorXd& regressors) const {
        return kernel_.product_variance + regressors.cwiseAbs2().dot(data_.coefficient_variance);
    }

private:
    /// Rounding leaves that much of a variance that is nothing.
    static double least_variance(double prior) { return 1e-12 * prior; }

    void check() const {
        const Eigen::Index n = data_.size();
        if (data_.noise_factors.size() != n || data_.regressors.rows() != n ||
            static_cast<Eigen::Index>(data_.points.size()) != n ||
            data_.regressors.cols() != data_.coefficient_mean.size() ||
            data_.coefficient_mean.size() != data_.coefficient_variance.size())
            throw UsageError(
                "a Gaussian process needs as many points, noise factors and rows of regressors as "
                "values");
        if (!data_.values.allFinite() || !data_.noise_factors.allFinite() ||
            !data_.regressors.allFinite())
            throw UsageError("a Gaussian process is conditioned on finite numbers only");
    }

    [[nodiscard]] Eigen::MatrixXd with_regressors(Eigen::MatrixXd k, const Eigen::MatrixXd& a,
                                                  const Eigen::MatrixXd& b) const {
        k.noalias() += a * data_.coefficient_variance.asDiagonal() * b.transpose();
        return k;
    }

    /// Points that are alike to rounding have no factor: the smallest share of the mean variance on
    /// the diagonal that gives them one.
    void factorise(Eigen::MatrixXd k) {
        const double mean = k.rows() > 0 ? k.diagonal().mean() : 0;
        double added = 0;
        for (double share = 1e-12;; share *= 10) {
            const Eigen::LLT<Eigen::MatrixXd> llt(k);
            const bool made = llt.info() == Eigen::Success &&
                              (k.rows() == 0 || llt.matrixLLT().diagonal().minCoeff() > 0);
            if (made) {
                factor_ = llt.matrixL();
                return;
            }
            if (share > 1e-2)
                throw UsageError("the covariance of the observations has no Cholesky factor");
            k.diagonal().array() += share * mean - added;
            added = share * mean;
        }
    }

    [[nodiscard]] Eigen::MatrixXd half_solve(const Eigen::MatrixXd& right) const {
        if (right.cols() == 0)
            return right;  // no points: Eigen would refer to the first number of none
        return factor_.triangularView<Eigen::Lower>().solve(right);
    }
    [[nodiscard]] Eigen::VectorXd solve(const Eigen::VectorXd& right) const {
        return factor_.triangularView<Eigen::Lower>().transpose().solve(
            factor_.triangularView<Eigen::Lower>().solve(right));
    }

    const LevelGeometry* geometry_;
    KernelParameters kernel_;
    double noise_variance_;
    Observations data_;
    Eigen::MatrixXd factor_{};
    Eigen::VectorXd residual_{};
    Eigen::VectorXd weights_{};
};

}  // namespace servetune
