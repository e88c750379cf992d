// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "servetune/workload.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace servetune {

namespace arrival_detail {

/// Arrivals of a process of mean gap 1: the first at 0, the last at `count - 1` exactly, the gaps
/// Gamma with this shape and scaled to fit (Dirichlet). For shape 1 this is a Poisson process given
/// how many arrive in that time.
inline std::vector<double> unit_arrivals(std::size_t count, double shape, Rng& rng) {
    std::vector<double> result(count, 0.0);
    double sum = 0;
    for (std::size_t i = 1; i < count; ++i)
        result[i] = sum += std::isinf(shape) ? 1 : rng.gamma(shape);
    if (count > 1 && !(sum > 0))
        throw UsageError("burstiness " + std::to_string(shape) +
                         " is too small to draw gaps from; use 0.01 or more");
    for (std::size_t i = 1; i < count; ++i)
        result[i] = i + 1 == count ? double(count - 1) : result[i] / sum * double(count - 1);
    return result;
}

}  // namespace arrival_detail

/// When each of `count` requests is sent, in seconds from the start, rising.
///
/// - all at once, closed loop: zeros; so for `largest_concurrency`. `largest_rate`: as at a rate of
///   1, for whoever looks for the rate to divide.
/// - rate r, burstiness b: gaps ~ Gamma(shape b, mean 1/r), as in vLLM's load test: b = 1 is
///   Poisson, b < 1 burstier, infinite an even pace. Then scaled so that the mean gap is exactly
///   1/r: the offered rate of a short run is no matter of luck, and compared runs offer the same.
///   The first request is sent at 0 (vLLM: after one gap).
/// - trace: the data set has the times; throws UsageError, as for rates that are none.
inline std::vector<double> arrival_times(const Arrival& arrival, std::size_t count, Rng rng) {
    const auto check = [](bool fine, const std::string& wanted, double got) {
        if (!fine) throw UsageError("arrival: " + wanted + " wanted, got " + std::to_string(got));
    };
    if (arrival.kind == Arrival::Kind::all_at_once || arrival.kind == Arrival::Kind::concurrency ||
        arrival.kind == Arrival::Kind::largest_concurrency)
        return std::vector<double>(count, 0.0);
    if (arrival.kind == Arrival::Kind::trace)
        throw UsageError(
            "arrival: time stamps wanted, and the data set has none; they come with a data set of "
            "kind trace");
    const bool searched = arrival.kind == Arrival::Kind::largest_rate;
    const double rate = searched ? 1 : arrival.requests_per_second;
    check(rate >= slowest_rate && rate <= fastest_rate, "a rate of 1e-6 to 1e9 requests per second",
          rate);
    check(arrival.burstiness > 0, "a positive burstiness", arrival.burstiness);
    std::vector<double> times = arrival_detail::unit_arrivals(count, arrival.burstiness, rng);
    for (double& time : times) time /= rate;
    return times;
}

}  // namespace servetune
