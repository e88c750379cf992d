// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/probability.hpp"
#include "feasibility.hpp"
#include "gaussian_process.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace servetune {

/// ln h(z), h(z) = phi(z) + z Phi(z): what a standard normal is expected to be above -z. Exact to
/// 1e-11 from z = -1e8 up (Ament, Daulton, Eriksson, Balandat, Bakshy, Unexpected Improvements to
/// Expected Improvement, NeurIPS 2023, eq. 9, with a continued fraction in place of erfcx).
inline double log_improvement(double z) {
    constexpr double near = -1;
    if (z > near) return std::log(normal_density(z) + z * normal_cdf(z));
    const double log_density = log_normal_density(z);
    // 1 + z Phi / phi has lost five digits there; its series 1/z^2 - 3/z^4 + 15/z^6 is exact to
    // 2e-12
    constexpr double far = -200;
    if (z > far) return log_density + std::log1p(z / inverse_mills(z));
    return log_density - 2 * std::log(-z) + std::log1p((-3 + 15 / (z * z)) / (z * z));
}

/// ln E max(f - best, 0) of a normal f; more is better.
inline double log_expected_improvement(const Prediction& prediction, double best) {
    const double sd = std::sqrt(prediction.variance);
    return std::log(sd) + log_improvement((prediction.mean - best) / sd);
}

/// ln of what one measurement of f(x) is expected to add to the better posterior mean of x and of
/// the incumbent (knowledge gradient of two arms that are correlated; Frazier, Powell, Dayanik, The
/// Knowledge-Gradient Policy for Correlated Normal Beliefs, INFORMS J. Computing 21, 2009). As EI,
/// with the standard deviation
///
///     s = |var f(x) - cov(f(x), f(incumbent))| / sqrt(var f(x) + noise)
///
/// of what the measurement will say of their difference. A step so small that both are nearly the
/// same, or that noise hides it, is worth nothing, though EI promises 0.4 standard deviations for
/// it.
inline double log_expected_gain(const Prediction& prediction, double best, double covariance,
                                double noise_variance) {
    constexpr double rounding = 1e-6;
    const double told =
        std::max(std::abs(prediction.variance - covariance), rounding * prediction.variance);
    const double sd = told / std::sqrt(prediction.variance + noise_variance);
    return std::log(sd) + log_improvement((prediction.mean - best) / sd);
}

/// `log_improvement` from a table, to 2e-4 from -32 up and to 3e-3 below: to rank.
class LogImprovementTable {
public:
    LogImprovementTable() {
        for (std::size_t i = 0; i < rests_.size(); ++i) {
            const double z = lowest + double(i) / steps;
            rests_[i] = static_cast<float>(log_improvement(z) + (z < 0 ? 0.5 * z * z : 0));
        }
    }
    [[nodiscard]] float operator()(float z) const {
        if (z >= highest) return std::log(z);
        const float parabola = z < 0 ? -0.5F * z * z : 0.0F;
        if (z <= lowest) return parabola - 0.91893853F - 2 * std::log(-z);
        const float at = (z - lowest) * steps;
        const auto i = std::size_t(at);
        const float share = at - static_cast<float>(i);
        return parabola + rests_[i] + share * (rests_[i + 1] - rests_[i]);
    }

private:
    static constexpr float lowest = -32;
    static constexpr float highest = 8;
    static constexpr float steps =
        64;  ///< for each unit; one of them is at 0, where the parabola ends
    std::array<float, std::size_t((highest - lowest) * steps) + 2>
        rests_{};  ///< ln h(z) above its parabola: nearly straight
};

/// ln E max(f, 0) of each of many normals, in single precision.
inline Eigen::VectorXf log_improvements(const Eigen::ArrayXf& means, const Eigen::ArrayXf& sds) {
    static const LogImprovementTable table;
    return sds.log() + (means / sds).unaryExpr([](float value) { return table(value); });
}

/// `log_expected_gain` of each of many, in single precision.
inline Eigen::VectorXf log_expected_gains(const Eigen::VectorXf& means,
                                          const Eigen::VectorXf& variances,
                                          const Eigen::VectorXf& covariances, float best,
                                          float noise_variance) {
    constexpr float rounding = 1e-6F;
    return log_improvements(
        means.array() - best,
        (variances - covariances).array().abs().max(rounding * variances.array()) /
            (variances.array() + noise_variance).sqrt());
}

/// What each can be at most once measurements of others are under way, whatever they are of: means
/// stay, and by Cauchy and Schwarz
///
///     s = |cov(f(x), f(x) - f(incumbent))| / sqrt(var f(x) + noise)
///       <= sqrt(var(f(x) - f(incumbent)) var f(x) / (var f(x) + noise)),
///
/// of which nothing grows. `of_best`: the incumbent's variance.
inline Eigen::VectorXf log_gain_bounds(const Eigen::VectorXf& means,
                                       const Eigen::VectorXf& variances,
                                       const Eigen::VectorXf& covariances, float best,
                                       float noise_variance, float of_best) {
    constexpr float rounding = 1e-5F;  // of the variances, and below of the table
    const Eigen::ArrayXf apart =
        ((variances - 2 * covariances).array() + of_best).max(0.0F) + rounding;
    const Eigen::ArrayXf sds =
        (apart * variances.array() / (variances.array() + noise_variance)).sqrt();
    return log_improvements(means.array() - best, sds).array() + 0.01F;
}

}  // namespace servetune
