// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "load/arrival_process.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace servetune;
using namespace servetune::test;

namespace {

Arrival rate(double per_second, double burstiness = 1) {
    return {
        .kind = Arrival::Kind::rate, .requests_per_second = per_second, .burstiness = burstiness};
}

std::vector<double> gaps_of(const std::vector<double>& times) {
    std::vector<double> gaps;
    for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
    return gaps;
}

/// sqrt(n) times the largest distance from the exponential distribution of this mean: above 1.63
/// once in a hundred samples.
double kolmogorov_smirnov(std::vector<double> sample, double mean) {
    sort(sample);
    const auto n = double(sample.size());
    double most = 0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const double wanted = 1 - std::exp(-sample[i] / mean);
        most = std::max(
            {most, std::abs(wanted - double(i) / n), std::abs(wanted - double(i + 1) / n)});
    }
    return most * std::sqrt(n);
}

double cv_of(const std::vector<double>& values) {
    const auto n = double(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    for (const double value : values) squares += (value - mean) * (value - mean);
    return std::sqrt(squares / n) / mean;
}

}  // namespace

TEST_CASE("arrivals: all at once and a closed loop wait for nothing") {
    CHECK(arrival_times({}, 3, Rng(1)) == std::vector<double>{0, 0, 0});
    CHECK(arrival_times({.kind = Arrival::Kind::concurrency, .in_flight = 2}, 2, Rng(1)) ==
          std::vector<double>{0, 0});
    CHECK(arrival_times(rate(5), 0, Rng(1)).empty());
    CHECK(arrival_times(rate(5), 1, Rng(1)) == std::vector<double>{0});
}

TEST_CASE("arrivals: an even pace has equal gaps") {
    CHECK(arrival_times(rate(4, std::numeric_limits<double>::infinity()), 5, Rng(1)) ==
          std::vector<double>{0, 0.25, 0.5, 0.75, 1});
}

TEST_CASE("arrivals: the mean rate is exact for every seed and burstiness, times do not go back") {
    for (const double burstiness : {0.1, 0.5, 1.0, 4.0})
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const std::vector<double> times = arrival_times(rate(8, burstiness), 201, Rng(seed));
            CHECK(times.front() == 0);
            CHECK(times.back() == 25);  // 200 gaps of 1/8 s
            CHECK(std::is_sorted(times.begin(), times.end()));
        }
    CHECK(arrival_times(rate(8), 50, Rng(3)) == arrival_times(rate(8), 50, Rng(3)));
    CHECK(arrival_times(rate(8), 50, Rng(3)) != arrival_times(rate(8), 50, Rng(4)));
}

TEST_CASE("arrivals: burstiness 1 is a Poisson process, other shapes are not") {
    const auto gaps = [](double burstiness) {
        return gaps_of(arrival_times(rate(10, burstiness), 4001, Rng(11)));
    };
    CHECK(kolmogorov_smirnov(gaps(1), 0.1) < 1.63);
    CHECK(kolmogorov_smirnov(gaps(0.7), 0.1) > 1.63);
    CHECK(kolmogorov_smirnov(gaps(1.4), 0.1) > 1.63);
    // The coefficient of variation of a Gamma distribution is 1 / sqrt(shape).
    CHECK(cv_of(gaps(1)) == Approx(1).margin(0.08));
    CHECK(cv_of(gaps(0.25)) == Approx(2).margin(0.25));
    CHECK(cv_of(gaps(4)) == Approx(0.5).margin(0.04));
    // Neighbouring gaps know nothing of each other.
    const std::vector<double> some = gaps(1);
    double together = 0;
    for (std::size_t i = 1; i < some.size(); ++i)
        together += (some[i] - 0.1) * (some[i - 1] - 0.1) / 0.01;
    CHECK(std::abs(together / 4000) < 4 / std::sqrt(4000.0));
}

TEST_CASE("arrivals: the same times on every compiler and Boost") {
    const std::vector<double> times = arrival_times(rate(1, 0.5), 5, Rng(42));
    CHECK(times[1] == Approx(3.2586376067156).epsilon(1e-12));
    CHECK(times[2] == Approx(3.2629132030399).epsilon(1e-12));
    CHECK(Rng(42).gamma(2.5) == Approx(2.41267882613493).epsilon(1e-12));
}

TEST_CASE("arrivals: what makes no sense is said") {
    CHECK(message_of<UsageError>([] { (void)arrival_times(rate(0), 3, Rng(1)); }) ==
          "arrival: a rate of 1e-6 to 1e9 requests per second wanted, got 0.000000");
    CHECK(message_of<UsageError>([] { (void)arrival_times(rate(-1), 3, Rng(1)); }) ==
          "arrival: a rate of 1e-6 to 1e9 requests per second wanted, got -1.000000");
    CHECK(message_of<UsageError>([] { (void)arrival_times(rate(1, 0), 3, Rng(1)); }) ==
          "arrival: a positive burstiness wanted, got 0.000000");
    CHECK(has(message_of<UsageError>(
                  [] { (void)arrival_times({.kind = Arrival::Kind::trace}, 3, Rng(1)); }),
              "time stamps wanted"));
}
