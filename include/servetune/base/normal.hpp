// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace servetune {

inline constexpr double normal_95 = 1.959963984540054;  ///< the 97.5 % point of a normal: of 95 % both ways

/// Phi^-1: where the standard normal distribution function reaches `p`, 0 < p < 1, within +-9; by bisection, for it is asked seldom.
inline double normal_quantile(double p) {
    double low = -9;
    double high = 9;
    for (int i = 0; i < 80; ++i) {
        const double middle = 0.5 * (low + high);
        (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

}  // namespace servetune
