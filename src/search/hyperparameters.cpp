// SPDX-License-Identifier: Apache-2.0
#include "hyperparameters.hpp"

#include <limits>

namespace servetune {

double Hyperparameters::negative_log_posterior(const DistanceTables& tables,
                                               const Observations& data,
                                               const Eigen::VectorXd& theta,
                                               Eigen::VectorXd& gradient) const {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    gradient = Eigen::VectorXd::Zero(size());
    constexpr double farthest =
        12;  // e^12 either way from anything that the priors hold: a step too far
    if (!theta.allFinite() || (theta - prior_mode()).cwiseAbs().maxCoeff() > farthest)
        return infinite;
    const KernelParameters parameters = kernel(theta);
    const Eigen::Index n = data.size();
    Eigen::MatrixXd r2 = Eigen::MatrixXd::Zero(n, n);
    for (Eigen::Index d = 0; d < dimensions_; ++d)
        r2 += parameters.inverse_squared_lengths(d) * tables[std::size_t(d)];
    const Eigen::MatrixXd matern = r2.unaryExpr([](double value) { return matern52(value); });
    Eigen::MatrixXd k = parameters.product_variance * matern;
    k.noalias() +=
        data.regressors * data.coefficient_variance.asDiagonal() * data.regressors.transpose();
    k.diagonal() += noise_variance(theta) * data.noise_factors;
    const Eigen::LLT<Eigen::MatrixXd> llt(k);
    if (llt.info() != Eigen::Success || (n > 0 && !(llt.matrixLLT().diagonal().minCoeff() > 0)))
        return infinite;
    const Eigen::VectorXd residual = data.values - data.regressors * data.coefficient_mean;
    const Eigen::VectorXd weights = llt.solve(residual);
    double value = 0.5 * residual.dot(weights) + llt.matrixLLT().diagonal().array().log().sum();

    Eigen::MatrixXd pull = llt.solve(Eigen::MatrixXd::Identity(n, n));  // K^-1 - a a'
    pull.noalias() -= weights * weights.transpose();
    const Eigen::MatrixXd slope =
        parameters.product_variance * r2.unaryExpr([](double at) { return matern52_slope(at); });
    const Eigen::MatrixXd pulled_slope = pull.cwiseProduct(slope);
    for (Eigen::Index d = 0; d < dimensions_; ++d) {
        const double inverse = parameters.inverse_squared_lengths(d);
        const Eigen::MatrixXd& table = tables[std::size_t(d)];
        const double sum = pulled_slope.cwiseProduct(table).sum();
        gradient(d) = 0.5 * -2 * inverse * sum;
    }
    gradient(dimensions_) = 0.5 * parameters.product_variance * pull.cwiseProduct(matern).sum();
    gradient(dimensions_ + 1) =
        0.5 * std::exp(theta(dimensions_ + 1)) * pull.diagonal().dot(data.noise_factors);
    for (Eigen::Index i = 0; i < size(); ++i) {
        const double off = (theta(i) - prior(i).log_mean) / prior(i).log_sd;
        value += 0.5 * off * off;
        gradient(i) += off / prior(i).log_sd;
    }
    return value;
}

namespace {

/// An even part of the observations, and the distances among them.
std::pair<DistanceTables, Observations> thinned(const DistanceTables& tables,
                                                const Observations& data, std::size_t most) {
    const std::vector<Eigen::Index> kept = even_part(data.points.size(), most);
    Observations fewer;
    for (const Eigen::Index i : kept) fewer.points.push_back(data.points[std::size_t(i)]);
    DistanceTables among;
    for (const Eigen::MatrixXd& table : tables) among.emplace_back(table(kept, kept));
    fewer.values = data.values(kept);
    fewer.noise_factors = data.noise_factors(kept);
    fewer.regressors = data.regressors(kept, Eigen::all);
    fewer.coefficient_mean = data.coefficient_mean;
    fewer.coefficient_variance = data.coefficient_variance;
    return {std::move(among), std::move(fewer)};
}

}  // namespace

std::vector<HyperparameterMode> fit_hyperparameters(const Hyperparameters& hyperparameters,
                                                    const DistanceTables& tables,
                                                    const Observations& data, std::uint64_t seed,
                                                    const HyperparameterSearch& search) {
    // A step is O(n^3), and so many tell lengths and noise.
    constexpr std::size_t fitted_to = 128;
    if (data.points.size() > fitted_to) {
        const auto [among, fewer] = thinned(tables, data, fitted_to);
        return fit_hyperparameters(hyperparameters, among, fewer, seed, search);
    }
    Rng rng(seed);
    std::vector<HyperparameterMode> found;
    constexpr std::size_t starts_of_many = 2;
    const std::size_t starts =
        data.points.size() > many_observations ? starts_of_many : search.starts;
    for (std::size_t start = 0; start < starts; ++start) {
        const Eigen::VectorXd from =
            start == 0 ? hyperparameters.prior_mode() : hyperparameters.prior_draw(rng);
        const LbfgsResult result = minimise_lbfgs(
            [&](const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) {
                return hyperparameters.negative_log_posterior(tables, data, theta, gradient);
            },
            from);
        if (std::isfinite(result.value)) found.push_back({result.point, result.value, 1});
    }
    stable_sort(found, [](const auto& a, const auto& b) {
        return a.negative_log_posterior < b.negative_log_posterior;
    });
    std::vector<HyperparameterMode> modes;
    double total = 0;
    for (HyperparameterMode& mode : found) {
        constexpr double same = 0.05;
        const bool known = any_of(modes, [&](const HyperparameterMode& better) {
            return (better.theta - mode.theta).cwiseAbs().maxCoeff() < same;
        });
        mode.weight =
            modes.empty()
                ? 1
                : std::exp(modes.front().negative_log_posterior - mode.negative_log_posterior);
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
