// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "expected_improvement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace servetune {

/// ln(e^a - e^b) for a >= b: -infinity where they are equal to rounding.
inline double log_difference(double a, double b) {
    return a > b ? a + std::log(-std::expm1(b - a)) : -std::numeric_limits<double>::infinity();
}

/// What is best in two goals so far, as the steps of a staircase over a reference point; more is
/// better in both.
///
/// Its hypervolume is the area between reference and staircase: what a new point adds to it is
/// worth measuring for (Zitzler and Thiele 1999). Cut along the first goal at the steps, the area
/// above the staircase is n + 1 strips (l_i, u_i] x (floor_i, infinity), and a point (y1, y2) adds
///
///     sum_i (min(y1, u_i) - l_i)^+ (y2 - floor_i)^+
///
/// so that for independent normals the expectation is sum_i (EI_1(l_i) - EI_1(u_i)) EI_2(floor_i),
/// EI_k(a) = E (y_k - a)^+, EI_1(infinity) = 0: exact, O(n) for a point (Emmerich, Yang, Deutz,
/// Wang, Fonseca 2016; Yang, Emmerich, Deutz, Baeck 2019). Every term is taken in logarithms; the
/// last strip has no end, so the sum is never below the logarithms of what is there: finite
/// wherever ln EI is.
class Staircase {
public:
    using Point = std::array<double, 2>;

    /// Points that are dominated, or not above the reference in both goals, take no part.
    Staircase(std::vector<Point> points, Point reference) : reference_(reference) {
        sort(points, [](const Point& a, const Point& b) { return a > b; });
        double highest = reference[1];
        for (const Point& point :
             points) {  // from the best in the first goal: each must be higher in the second
            if (point[0] <= reference[0] || point[1] <= highest) continue;
            steps_.push_back(point);
            highest = point[1];
        }
        std::reverse(steps_.begin(), steps_.end());
    }

    /// The non-dominated points, the first goal rising, the second falling.
    [[nodiscard]] const std::vector<Point>& steps() const { return steps_; }

    /// What a point adds to the hypervolume.
    [[nodiscard]] double improvement(const Point& point) const {
        double area = 0;
        for (std::size_t i = 0; i <= steps_.size(); ++i) {
            const double end = i < steps_.size() ? std::min(point[0], steps_[i][0]) : point[0];
            area += std::max(end - begin(i), 0.0) * std::max(point[1] - floor(i), 0.0);
        }
        return area;
    }
    /// ln of what a point is expected to add whose goals are independent normals.
    [[nodiscard]] double log_expected_improvement(const Prediction& first,
                                                  const Prediction& second) const {
        const double nothing = -std::numeric_limits<double>::infinity();
        double largest = nothing;  // sum of exponentials: e^largest times `sum`
        double sum = 0;
        double log_from = servetune::log_expected_improvement(first, reference_[0]);
        for (std::size_t i = 0; i <= steps_.size(); ++i) {
            const double log_to = i < steps_.size()
                                      ? servetune::log_expected_improvement(first, steps_[i][0])
                                      : nothing;
            const double log_width = log_difference(log_from, log_to);
            log_from = log_to;
            if (log_width == nothing) continue;
            const double term = log_width + servetune::log_expected_improvement(second, floor(i));
            if (term > largest) {
                sum = sum * std::exp(largest - term) + 1;
                largest = term;
            } else sum += std::exp(term - largest);
        }
        return largest + std::log(sum);
    }

private:
    [[nodiscard]] double begin(std::size_t strip) const {
        return strip == 0 ? reference_[0] : steps_[strip - 1][0];
    }
    [[nodiscard]] double floor(std::size_t strip) const {
        return strip < steps_.size() ? steps_[strip][1] : reference_[1];
    }

    Point reference_;
    std::vector<Point> steps_{};
};

}  // namespace servetune
