// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/statistics.hpp"

#include <boost/math/distributions/binomial.hpp>

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

constexpr double two_tails = 0.05;  ///< outside a 95 % interval

}  // namespace

double percentile(std::span<const double> sorted, double q) {
    const double at = q * static_cast<double>(sorted.size() - 1);
    const auto below = std::min(static_cast<std::size_t>(at), sorted.size() - 1);
    const auto above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::optional<Ranks> percentile_ranks(std::size_t n, double q) {
    if (n == 0 || !(q > 0 && q < 1)) return std::nullopt;
    // How many of n lie below the quantile is binomial: X(l) <= x_q <= X(h) unless it is below l or
    // at least h.
    const boost::math::binomial below(static_cast<double>(n), q);
    const auto at_most = [&](std::size_t k) {
        return boost::math::cdf(below, static_cast<double>(k));
    };
    const auto at_least = [&](std::size_t k) {
        return boost::math::cdf(boost::math::complement(below, static_cast<double>(k - 1)));
    };
    const auto lowest = [&](double tail) {  // the largest l with P(B <= l - 1) <= tail; 0: none
        std::size_t low = 0;
        std::size_t high = n;
        while (low < high) {
            const std::size_t middle = (low + high + 1) / 2;
            if (at_most(middle - 1) <= tail) low = middle;
            else high = middle - 1;
        }
        return low;
    };
    const auto highest = [&](double tail) {  // the smallest h with P(B >= h) <= tail; n + 1: none
        std::size_t low = 1;
        std::size_t high = n + 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (middle <= n && at_least(middle) > tail) low = middle + 1;
            else high = middle;
        }
        return low;
    };
    Ranks ranks{lowest(two_tails / 2), highest(two_tails / 2)};
    if (ranks.high > n) {
        ranks.high = n;
        const double left = two_tails - at_least(n);
        ranks.low = left >= 0 ? lowest(left) : 0;
    } else if (ranks.low == 0) {
        ranks.low = 1;
        const double left = two_tails - at_most(0);
        ranks.high = left >= 0 ? highest(left) : n + 1;
    }
    if (ranks.low < 1 || ranks.high > n) return std::nullopt;
    return ranks;
}

}  // namespace servetune
