// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eigen.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace servetune {

struct LbfgsOptions {
    std::size_t iterations =
        50;  ///< a fit of a dozen parameters has converged by then, or its start was hopeless
    std::size_t memory = 8;  ///< pairs kept; 3 to 20 is usual (Nocedal and Wright, section 7.2)
    double gradient_tolerance =
        1e-4;  ///< largest component; of a log posterior, whose differences below 1e-3 mean nothing
};

struct LbfgsResult {
    Eigen::VectorXd point;
    double value = 0;
};

/// Minimises a smooth function without bounds by limited-memory BFGS (Nocedal and Wright, Numerical
/// Optimization, 2006, algorithm 7.4) with backtracking until Armijo's condition holds; pairs
/// without positive curvature are left out. `function(x, gradient)` gives the value and fills the
/// gradient; a value that is not finite is a step too far. Returns the best point seen; the start
/// where nothing is better.
template <class Function>
LbfgsResult minimise_lbfgs(const Function& function, Eigen::VectorXd start,
                           const LbfgsOptions& options = {}) {
    struct Pair {
        Eigen::VectorXd step;
        Eigen::VectorXd change;
        double curvature;
    };
    std::deque<Pair> pairs;
    LbfgsResult result{std::move(start), 0};
    Eigen::VectorXd gradient(result.point.size());
    result.value = function(result.point, gradient);
    if (!std::isfinite(result.value)) return result;
    for (std::size_t iteration = 0; iteration < options.iterations; ++iteration) {
        if (gradient.size() == 0 || gradient.cwiseAbs().maxCoeff() < options.gradient_tolerance)
            break;
        // Two loops: H gradient from the pairs, H0 = s'y / y'y (equation 7.20).
        Eigen::VectorXd direction = -gradient;
        std::vector<double> alphas(pairs.size());
        for (std::size_t i = pairs.size(); i-- > 0;) {
            alphas[i] = pairs[i].step.dot(direction) / pairs[i].curvature;
            direction -= alphas[i] * pairs[i].change;
        }
        if (!pairs.empty()) direction *= pairs.back().curvature / pairs.back().change.squaredNorm();
        else
            direction /= std::max(
                1.0,
                gradient.norm());  // nothing is known of the scale: a step of length one at most
        for (std::size_t i = 0; i < pairs.size(); ++i)
            direction +=
                (alphas[i] - pairs[i].change.dot(direction) / pairs[i].curvature) * pairs[i].step;
        const double slope = gradient.dot(direction);
        if (!(slope < 0)) {
            if (pairs.empty()) break;
            pairs.clear();
            continue;
        }
        constexpr double armijo = 1e-4;  // Nocedal and Wright, section 3.1
        constexpr int halvings = 20;
        bool moved = false;
        Eigen::VectorXd next_gradient(gradient.size());
        double length = 1;
        for (int i = 0; i < halvings && !moved; ++i, length *= 0.5) {
            const Eigen::VectorXd next = result.point + length * direction;
            const double value = function(next, next_gradient);
            if (!std::isfinite(value) || value > result.value + armijo * length * slope) continue;
            moved = true;
            const Eigen::VectorXd step = next - result.point;
            const Eigen::VectorXd change = next_gradient - gradient;
            if (const double curvature = step.dot(change);
                curvature > 1e-12 * step.norm() * change.norm())
                pairs.push_back({step, change, curvature});
            if (pairs.size() > options.memory) pairs.pop_front();
            result.point = next;
            result.value = value;
            gradient = next_gradient;
        }
        if (moved) continue;
        if (pairs.empty()) break;
        pairs.clear();  // the curvature misled: once more along the gradient
    }
    return result;
}

}  // namespace servetune
