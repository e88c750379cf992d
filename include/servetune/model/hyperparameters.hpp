// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/rng.hpp"
#include "servetune/model/gaussian_process.hpp"
#include "servetune/model/hyperparameter_search.hpp"
#include "servetune/model/lbfgs.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace servetune {

/// A normal over the logarithm of a positive parameter.
struct LogNormal {
    double log_mean = 0;
    double log_sd = 1;
};

/// What is believed of the parameters of a Gaussian process over standardised values before they are seen.
///
/// Lengths: ln l_d ~ N(ln 0.4 + 0.5 ln D + 0.5 ln t_d, 0.75^2). Distances in D dimensions grow like sqrt(D), so must lengths, or nothing would be correlated
/// with anything (Hvarfner, Hellsten, Nardi, Vanilla Bayesian Optimization Performs Great in High Dimensions, ICML 2024). t_d is the dimension's typical distance:
/// neighbours on a long scale are nearer to each other than two categories. Shorter (ln t_d) or longer (0) ones lost to this on ordered or on unordered
/// parameters (docs/performance.md). Variances: ln s_p^2 ~ N(ln 0.5, 1), for the values are standardised and the regressors take a part.
/// Noise: around what is assumed or has been measured, in units of the values.
struct HyperparameterPriors {
    std::vector<LogNormal> lengths{};  ///< one for each dimension
    LogNormal product_variance{-0.6931471805599453, 1};
    LogNormal noise_variance{-6.214608098422191, 1.3};  ///< 2e-3: 4.5 % of the values' spread
    bool additive = false;
    LogNormal additive_variance{-2.302585092994046, 1};  ///< 0.1

    static HyperparameterPriors of(const LevelGeometry& geometry) {
        HyperparameterPriors priors;
        const auto dimensions = static_cast<double>(geometry.dimensions());
        for (std::size_t d = 0; d < geometry.dimensions(); ++d)
            priors.lengths.push_back({std::log(0.4) + 0.5 * std::log(dimensions * geometry.typical_distance(d)), 0.75});
        return priors;
    }
};

/// Parameters of a Gaussian process as a vector of logarithms: ln l_1 .. ln l_D, ln s_p^2, ln s_n^2 and, where there is an additive part, ln s_a^2.
class Hyperparameters {
public:
    /// `least_noise_variance`: below it the factor loses its digits.
    static constexpr double least_noise_variance = 1e-6;

    explicit Hyperparameters(HyperparameterPriors priors)
        : dimensions_(static_cast<Eigen::Index>(priors.lengths.size())), priors_(std::move(priors)) {}

    [[nodiscard]] Eigen::Index size() const { return dimensions_ + (priors_.additive ? 3 : 2); }
    [[nodiscard]] KernelParameters kernel(const Eigen::VectorXd& theta) const {
        return {(-2 * theta.head(dimensions_)).array().exp(), std::exp(theta(dimensions_)),
                priors_.additive ? std::exp(theta(dimensions_ + 2)) : 0.0};
    }
    [[nodiscard]] double noise_variance(const Eigen::VectorXd& theta) const {
        return least_noise_variance + std::exp(theta(dimensions_ + 1));
    }

    /// The mode of the prior, and a draw of it.
    [[nodiscard]] Eigen::VectorXd prior_mode() const {
        Eigen::VectorXd result(size());
        for (Eigen::Index i = 0; i < size(); ++i) result(i) = prior(i).log_mean;
        return result;
    }
    [[nodiscard]] Eigen::VectorXd prior_draw(Rng& rng) const {
        Eigen::VectorXd result(size());
        for (Eigen::Index i = 0; i < size(); ++i) result(i) = prior(i).log_mean + prior(i).log_sd * rng.normal();
        return result;
    }

    /// -ln p(y, theta) up to a constant, and its gradient: 0.5 tr((K^-1 - a a') dK) (GPML eq. 5.9), a = K^-1 r, and the prior's.
    /// Infinite where the covariance has no factor. O(n^3 + n^2 D).
    double negative_log_posterior(const DistanceTables& tables, const Observations& data, const Eigen::VectorXd& theta,
                                  Eigen::VectorXd& gradient) const;

private:
    [[nodiscard]] const LogNormal& prior(Eigen::Index i) const {
        if (i < dimensions_) return priors_.lengths[static_cast<std::size_t>(i)];
        return i == dimensions_ ? priors_.product_variance : i == dimensions_ + 1 ? priors_.noise_variance : priors_.additive_variance;
    }

    Eigen::Index dimensions_;
    HyperparameterPriors priors_;
};

inline double Hyperparameters::negative_log_posterior(const DistanceTables& tables, const Observations& data, const Eigen::VectorXd& theta,
                                                      Eigen::VectorXd& gradient) const {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    gradient = Eigen::VectorXd::Zero(size());
    constexpr double farthest = 12;  // e^12 either way from anything that the priors hold: a step too far
    if (!theta.allFinite() || (theta - prior_mode()).cwiseAbs().maxCoeff() > farthest) return infinite;
    const KernelParameters parameters = kernel(theta);
    const Eigen::Index n = data.size();
    Eigen::MatrixXd r2 = Eigen::MatrixXd::Zero(n, n);
    for (Eigen::Index d = 0; d < dimensions_; ++d) r2 += parameters.inverse_squared_lengths(d) * tables[static_cast<std::size_t>(d)];
    const Eigen::MatrixXd matern = r2.unaryExpr([](double value) { return matern52(value); });
    Eigen::MatrixXd k = parameters.product_variance * matern;
    Eigen::MatrixXd additive = Eigen::MatrixXd::Zero(priors_.additive ? n : 0, priors_.additive ? n : 0);
    if (priors_.additive) {
        for (Eigen::Index d = 0; d < dimensions_; ++d)
            additive += (parameters.inverse_squared_lengths(d) * tables[static_cast<std::size_t>(d)]).unaryExpr([](double value) {
                return matern52(value);
            });
        additive *= parameters.additive_variance / static_cast<double>(std::max<Eigen::Index>(dimensions_, 1));
        k += additive;
    }
    k.noalias() += data.regressors * data.coefficient_variance.asDiagonal() * data.regressors.transpose();
    k.diagonal() += noise_variance(theta) * data.noise_factors;
    const Eigen::LLT<Eigen::MatrixXd> llt(k);
    if (llt.info() != Eigen::Success || (n > 0 && !(llt.matrixLLT().diagonal().minCoeff() > 0))) return infinite;
    const Eigen::VectorXd residual = data.values - data.regressors * data.coefficient_mean;
    const Eigen::VectorXd weights = llt.solve(residual);
    double value = 0.5 * residual.dot(weights) + llt.matrixLLT().diagonal().array().log().sum();

    Eigen::MatrixXd pull = llt.solve(Eigen::MatrixXd::Identity(n, n));  // K^-1 - a a'
    pull.noalias() -= weights * weights.transpose();
    const Eigen::MatrixXd slope = parameters.product_variance * r2.unaryExpr([](double at) { return matern52_slope(at); });
    const Eigen::MatrixXd pulled_slope = pull.cwiseProduct(slope);
    for (Eigen::Index d = 0; d < dimensions_; ++d) {
        const double inverse = parameters.inverse_squared_lengths(d);
        const Eigen::MatrixXd& table = tables[static_cast<std::size_t>(d)];
        double sum = pulled_slope.cwiseProduct(table).sum();
        if (priors_.additive) {
            const double share = parameters.additive_variance / static_cast<double>(dimensions_);
            sum += share *
                   pull.cwiseProduct(table).cwiseProduct((inverse * table).unaryExpr([](double at) { return matern52_slope(at); })).sum();
        }
        gradient(d) = 0.5 * -2 * inverse * sum;
    }
    gradient(dimensions_) = 0.5 * parameters.product_variance * pull.cwiseProduct(matern).sum();
    gradient(dimensions_ + 1) = 0.5 * std::exp(theta(dimensions_ + 1)) * pull.diagonal().dot(data.noise_factors);
    if (priors_.additive) gradient(dimensions_ + 2) = 0.5 * pull.cwiseProduct(additive).sum();
    for (Eigen::Index i = 0; i < size(); ++i) {
        const double off = (theta(i) - prior(i).log_mean) / prior(i).log_sd;
        value += 0.5 * off * off;
        gradient(i) += off / prior(i).log_sd;
    }
    return value;
}

/// A mode of the posterior of the parameters, and its share of those that were found.
struct HyperparameterMode {
    Eigen::VectorXd theta;
    double negative_log_posterior = 0;
    double weight = 1;
};

/// An even part of the observations, and the distances among them.
inline std::pair<DistanceTables, Observations> thinned(const DistanceTables& tables, const Observations& data, std::size_t most) {
    const std::vector<Eigen::Index> kept = even_part(data.points.size(), most);
    Observations fewer;
    for (const Eigen::Index i : kept) fewer.points.push_back(data.points[static_cast<std::size_t>(i)]);
    DistanceTables among;
    for (const Eigen::MatrixXd& table : tables) among.emplace_back(table(kept, kept));
    fewer.values = data.values(kept);
    fewer.noise_factors = data.noise_factors(kept);
    fewer.regressors = data.regressors(kept, Eigen::all);
    fewer.coefficient_mean = data.coefficient_mean;
    fewer.coefficient_variance = data.coefficient_variance;
    return {std::move(among), std::move(fewer)};
}

/// The best modes from several starts, the best first; those within 0.05 of a better one in every logarithm are the same one. Weights: in proportion
/// to the posterior density at the mode, none below a tenth of the best's so that the rest is not counted. Depends on data and `seed` only.
inline std::vector<HyperparameterMode> fit_hyperparameters(const Hyperparameters& hyperparameters, const DistanceTables& tables,
                                                           const Observations& data, std::uint64_t seed,
                                                           const HyperparameterSearch& search = {}) {
    if (data.points.size() > search.fitted_to) {
        const auto [among, fewer] = thinned(tables, data, search.fitted_to);
        return fit_hyperparameters(hyperparameters, among, fewer, seed, search);
    }
    Rng rng(seed);
    std::vector<HyperparameterMode> found;
    const std::size_t starts = data.points.size() > search.many ? std::min(search.starts, search.starts_of_many) : search.starts;
    for (std::size_t start = 0; start < std::max<std::size_t>(starts, 1); ++start) {
        const Eigen::VectorXd from = start == 0 ? hyperparameters.prior_mode() : hyperparameters.prior_draw(rng);
        const LbfgsResult result =
            minimise_lbfgs([&](const Eigen::VectorXd& theta,
                               Eigen::VectorXd& gradient) { return hyperparameters.negative_log_posterior(tables, data, theta, gradient); },
                           from, {search.iterations});
        if (std::isfinite(result.value)) found.push_back({result.point, result.value, 1});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.negative_log_posterior < b.negative_log_posterior; });
    std::vector<HyperparameterMode> modes;
    double total = 0;
    for (HyperparameterMode& mode : found) {
        constexpr double same = 0.05;
        const bool known = std::any_of(modes.begin(), modes.end(), [&](const HyperparameterMode& better) {
            return (better.theta - mode.theta).cwiseAbs().maxCoeff() < same;
        });
        mode.weight = modes.empty() ? 1 : std::exp(modes.front().negative_log_posterior - mode.negative_log_posterior);
        constexpr double least_weight = 0.1;
        if (known || mode.weight < least_weight || modes.size() >= search.modes) continue;
        total += mode.weight;
        modes.push_back(std::move(mode));
    }
    if (modes.empty()) modes.push_back({hyperparameters.prior_mode(), 0, 1});
    else
        for (HyperparameterMode& mode : modes) mode.weight /= total;
    return modes;
}

}  // namespace servetune
