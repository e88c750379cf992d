// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feasibility.hpp"
#include "gaussian_process.hpp"
#include "servetune/rng.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace servetune {

/// Several goals as one number, u(y) = min_k w_k (y_k - z_k), z the best seen in each goal: each
/// set of positive weights has its best point on the front, and every point of the front is the
/// best of some (Chebyshev's scalarisation; Knowles, ParEGO, IEEE TEC 10(1), 2006).
///
/// ParEGO fits its process to u and adds 0.05 of the weighted sum, lest a point that others
/// dominate ties in the minimum. Here each goal has its own process, u of independent normals has
/// an expectation of its own, and none ties: a better mean in any goal raises every P(u > t).
///
///     E max(u - best, 0) = integral from best to infinity of prod_k Phi((m_k - z_k - t / w_k) / s_k) dt
class Chebyshev {
public:
    /// Weights positive.
    Chebyshev(std::vector<double> weights, std::vector<double> best_of_each)
        : weights_(std::move(weights)), origin_(std::move(best_of_each)) {}

    /// Evenly over all weights that add to 1 (exponentials over their sum; Devroye 1986, section
    /// V.2).
    static std::vector<double> drawn_weights(std::size_t goals, Rng& rng) {
        std::vector<double> result;
        double sum = 0;
        for (std::size_t k = 0; k < goals; ++k) {
            result.push_back(std::max(rng.gamma(1), 1e-9));
            sum += result.back();
        }
        for (double& weight : result) weight /= sum;
        return result;
    }

    [[nodiscard]] double value(std::span<const double> point) const {
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < weights_.size(); ++k)
            least = std::min(least, weights_[k] * (point[k] - origin_[k]));
        return least;
    }

    /// ln E max(u - best, 0) of independent normals. P(u > t) is log-concave: from its slope at
    /// `best` follows how far the integral reaches, to 1e-13 of it; Gauss's rule of 16 points
    /// (Abramowitz and Stegun 1964, table 25.4) has what is left of it where no chance is 1 to a
    /// thousandth at least.
    [[nodiscard]] double log_expected_improvement(std::span<const Prediction> goals,
                                                  double best) const {
        double slope = 0;
        double reach = std::numeric_limits<double>::infinity();
        double flat = reach;  // so far above `best` all chances are 1
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const double sd = weights_[k] * std::sqrt(goals[k].variance);
            const double above = weights_[k] * (goals[k].mean - origin_[k]) - best;
            slope += inverse_mills(above / sd) / sd;
            reach = std::min(reach, std::max(above, 0.0) + 8 * sd);  // Phi(-8) is 6e-16
            flat = std::min(flat, std::max(above - 8 * sd, 0.0));
        }
        reach = std::min(reach, 30 / slope);  // e^-30 is 1e-13
        const double at_best = log_chance_above(goals, best);
        double sum = 0;
        for (std::size_t i = 0; i < half_nodes.size(); ++i)
            for (const double node : {-half_nodes[i], half_nodes[i]})
                sum += half_weights[i] *
                       std::exp(log_chance_above(goals,
                                                 best + flat + 0.5 * (reach - flat) * (1 + node)) -
                                at_best);
        return at_best + std::log(flat + 0.5 * (reach - flat) * sum);
    }

private:
    static constexpr std::array<double, 8> half_nodes{
        0.0950125098376374, 0.2816035507792589, 0.4580167776572274, 0.6178762444026438,
        0.7554044083550030, 0.8656312023878318, 0.9445750230732326, 0.9894009349916499};
    static constexpr std::array<double, 8> half_weights{
        0.1894506104550685, 0.1826034150449236, 0.1691565193950025, 0.1495959888165767,
        0.1246289712555339, 0.0951585116824928, 0.0622535239386479, 0.0271524594117541};

    [[nodiscard]] double log_chance_above(std::span<const Prediction> goals, double t) const {
        double sum = 0;
        for (std::size_t k = 0; k < goals.size(); ++k)
            sum += log_normal_cdf((goals[k].mean - origin_[k] - t / weights_[k]) /
                                  std::sqrt(goals[k].variance));
        return sum;
    }

    std::vector<double> weights_;
    std::vector<double> origin_;
};

}  // namespace servetune
