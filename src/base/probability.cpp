// SPDX-License-Identifier: Apache-2.0
#include "base/probability.hpp"

namespace servetune {

double student_tails(double t, std::size_t freedom) {
    const double angle = std::atan(std::abs(t) / std::sqrt(double(freedom)));
    const double cosine = std::cos(angle);
    const bool odd = freedom % 2 == 1;
    double term = odd ? cosine : 1;
    double sum = freedom == 1 ? 0 : term;
    for (std::size_t k = odd ? 3 : 2; k + 2 <= freedom; k += 2) {
        term *= cosine * cosine * double(k - 1) / double(k);
        sum += term;
    }
    const double within =
        odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
    return std::max(0.0, 1 - within);
}

}  // namespace servetune
