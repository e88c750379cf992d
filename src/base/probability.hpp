// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace servetune {

inline constexpr double normal_95 =
    1.959963984540054;  ///< the 97.5 % point of a normal: of 95 % both ways

/// phi(x) = exp(-x^2 / 2) / sqrt(2 pi).
inline double normal_density(double x) { return 0.3989422804014327 * std::exp(-0.5 * x * x); }

/// ln phi(x), also where phi(x) is 0 in a double.
inline double log_normal_density(double x) { return -0.5 * x * x - 0.9189385332046727; }

/// Phi(x): the chance that a standard normal is below `x`. 1 - Phi(x) is `normal_cdf(-x)`.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// The chance that a normal of mean 0 and that variance (> 0) is below `x`.
inline double normal_cdf(double x, double variance) {
    return 0.5 * std::erfc(-x / std::sqrt(2 * variance));
}

/// phi(x) / Phi(x), without loss far to the left: continued fraction of Mills' ratio (Abramowitz
/// and Stegun 26.2.14).
inline double inverse_mills(double x) {
    constexpr double far = -6;
    if (x > far) return normal_density(x) / normal_cdf(x);
    double fraction = -x;
    for (int k = 40; k >= 1; --k) fraction = -x + k / fraction;
    return fraction;
}

/// ln Phi(x), without loss far to the left.
inline double log_normal_cdf(double x) {
    constexpr double far = -6;
    if (x > far) return std::log(normal_cdf(x));
    return log_normal_density(x) - std::log(inverse_mills(x));  // ln phi - ln(phi / Phi)
}

/// Phi^-1: where the standard normal distribution function reaches `p`, 0 < p < 1, within +-9; by
/// bisection, for it is asked seldom.
inline double normal_quantile(double p) {
    double low = -9;
    double high = 9;
    for (int i = 0; i < 80; ++i) {
        const double middle = 0.5 * (low + high);
        (normal_cdf(middle) < p ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

// Not Boost.Math's: every file that includes standings.hpp would take 0.8 s longer to compile,
// twice as long as now.

/// P(|T| > |t|) of Student's t with so many degrees of freedom, at least 1 (Abramowitz and Stegun
/// 26.7.3 and 26.7.4).
double student_tails(double t, std::size_t freedom);

/// t with P(|T| > t) = `tails`, above 0 and at most 1; by bisection, for it is asked seldom.
inline double student_quantile(double tails, std::size_t freedom) {
    double high = 1;
    while (student_tails(high, freedom) > tails && high < 1e9) high *= 2;
    double low = 0;
    for (int i = 0; i < 80; ++i) {
        const double middle = 0.5 * (low + high);
        (student_tails(middle, freedom) > tails ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

}  // namespace servetune
