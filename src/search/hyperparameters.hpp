// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigen.hpp"
#include "gaussian_process.hpp"
#include "lbfgs.hpp"
#include "servetune/rng.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace servetune {

/// A normal over the logarithm of a positive parameter.
struct LogNormal {
    double log_mean = 0;
    double log_sd = 1;
};

/// What is believed of the parameters of a Gaussian process over standardised values before they
/// are seen.
///
/// Lengths: ln l_d ~ N(ln 0.8 + 0.5 ln D + 0.5 ln t_d, 1.5^2). Distances in D dimensions grow like
/// sqrt(D), so must lengths, or nothing would be correlated with anything (Hvarfner, Hellsten,
/// Nardi, Vanilla Bayesian Optimization Performs Great in High Dimensions, ICML 2024). t_d is the
/// dimension's typical distance: neighbours on a long scale are nearer to each other than two
/// categories. Wide: most of an engine's flags change next to nothing and a few change everything,
/// and a narrow prior needs too many trials to learn either
/// (benchmarks/README.md). Variances: ln s_p^2 ~ N(ln 0.5, 1), for the values
/// are standardised and the regressors take a part. Noise: around what is assumed or has been
/// measured, in units of the values.
struct HyperparameterPriors {
    std::vector<LogNormal> lengths{};  ///< one for each dimension
    LogNormal product_variance{-0.6931471805599453, 1};
    LogNormal noise_variance{-6.214608098422191, 1.3};  ///< 2e-3: 4.5 % of the values' spread

    static HyperparameterPriors of(const LevelGeometry& geometry) {
        HyperparameterPriors priors;
        const auto dimensions = double(geometry.dimensions());
        for (std::size_t d = 0; d < geometry.dimensions(); ++d)
            priors.lengths.push_back(
                {std::log(0.8) + 0.5 * std::log(dimensions * geometry.typical_distance(d)), 1.5});
        return priors;
    }
};

/// Parameters of a Gaussian process as a vector of logarithms: ln l_1 .. ln l_D, ln s_p^2, ln
/// s_n^2.
class Hyperparameters {
public:
    /// `least_noise_variance`: below it the factor loses its digits.
    static constexpr double least_noise_variance = 1e-6;

    explicit Hyperparameters(HyperparameterPriors priors)
        : dimensions_(static_cast<Eigen::Index>(priors.lengths.size())),
          priors_(std::move(priors)) {}

    [[nodiscard]] Eigen::Index size() const { return dimensions_ + 2; }
    [[nodiscard]] KernelParameters kernel(const Eigen::VectorXd& theta) const {
        return {(-2 * theta.head(dimensions_)).array().exp(), std::exp(theta(dimensions_))};
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
        for (Eigen::Index i = 0; i < size(); ++i)
            result(i) = prior(i).log_mean + prior(i).log_sd * rng.normal();
        return result;
    }

    /// -ln p(y, theta) up to a constant, and its gradient: 0.5 tr((K^-1 - a a') dK) (GPML eq. 5.9),
    /// a = K^-1 r, and the prior's. Infinite where the covariance has no factor. O(n^3 + n^2 D).
    double negative_log_posterior(const DistanceTables& tables, const Observations& data,
                                  const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) const;

private:
    [[nodiscard]] const LogNormal& prior(Eigen::Index i) const {
        if (i < dimensions_) return priors_.lengths[std::size_t(i)];
        return i == dimensions_ ? priors_.product_variance : priors_.noise_variance;
    }

    Eigen::Index dimensions_;
    HyperparameterPriors priors_;
};

/// From where modes of the posterior are looked for.
struct HyperparameterSearch {
    std::size_t starts = 6;  ///< the prior's mode and draws of the prior
    std::size_t modes = 3;   ///< the best of them are kept
};
/// Where a rough model is enough.
inline constexpr HyperparameterSearch quick_search{2, 1};
/// Observations; of more than these two starts are enough. Few data allow several readings, each a
/// mode of its own; with many, one of them is far likelier than the others (Rasmussen and Williams,
/// GPML, section 5.4.1).
inline constexpr std::size_t many_observations = 64;

/// A mode of the posterior of the parameters, and its share of those that were found.
struct HyperparameterMode {
    Eigen::VectorXd theta;
    double negative_log_posterior = 0;
    double weight = 1;
};

/// The best modes from several starts, the best first; those within 0.05 of a better one in every
/// logarithm are the same one. Weights: in proportion to the posterior density at the mode, none
/// below a tenth of the best's so that the rest is not counted. Depends on data and `seed` only.
[[nodiscard]] std::vector<HyperparameterMode> fit_hyperparameters(
    const Hyperparameters& hyperparameters, const DistanceTables& tables, const Observations& data,
    std::uint64_t seed, const HyperparameterSearch& search = {});

}  // namespace servetune
