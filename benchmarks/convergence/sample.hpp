// SPDX-License-Identifier: Apache-2.0
// Figures of a sample, for tables.
#pragma once

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/statistics.hpp"

#include <cmath>
#include <vector>

namespace servetune::convergence {

/// 0 of nothing.
inline double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / double(values.size());
}

/// Of the mean; 0 where fewer than two values say nothing of it.
inline double standard_error(const std::vector<double>& values) {
    if (values.size() < 2) return 0;
    const double centre = mean(values);
    double squares = 0;
    for (const double value : values) squares += (value - centre) * (value - centre);
    const auto n = double(values.size());
    return std::sqrt(squares / (n - 1) / n);
}

/// `percentile` of values in any order; 0 of nothing.
inline double quantile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    sort(values);
    return percentile(values, share);
}

}  // namespace servetune::convergence
