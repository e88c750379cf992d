// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace servetune {

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
