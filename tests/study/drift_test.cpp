// SPDX-License-Identifier: Apache-2.0
// A machine that changes its speed while it is measured.
#include "base/probability.hpp"
#include "servetune/rng.hpp"
#include "servetune/standings.hpp"
#include "support/test.hpp"

#include <boost/math/distributions/students_t.hpp>

#include <cmath>
#include <functional>

using namespace servetune;
using namespace servetune::test;

namespace {

using Shape = std::function<double(double)>;  ///< place, 0 to 1 -> ln of the speed

/// With `others` configurations that are measured three times each, at places between the checks.
Drift of_shape(const Shape& shape, std::size_t checks, double cv, std::uint64_t seed,
               std::size_t others = 0, double assumed = 0.01) {
    Rng rng(seed);
    std::vector<DriftCheck> list;
    for (std::size_t i = 0; i < checks; ++i) {
        const double share = double(i) / double(checks - 1);
        list.push_back({60 * share, std::log(5000) + shape(share) + cv * rng.normal()});
    }
    std::vector<std::vector<DriftCheck>> rest(others);
    for (std::size_t i = 0; i < 3 * others; ++i) {
        const double share = (double(i) + 0.5) / double(3 * others);
        rest[i % others].push_back({60 * share, std::log(4000) + shape(share) + cv * rng.normal()});
    }
    return {std::move(list), assumed, rest};
}

double share_found(const Shape& shape, std::size_t checks, double cv, std::size_t others,
                   double assumed = 0.01) {
    double found = 0;
    constexpr int runs = 1000;
    for (std::uint64_t seed = 0; seed < runs; ++seed)
        found += of_shape(shape, checks, cv, seed, others, assumed).real() ? 1 : 0;
    return found / runs;
}

const Shape no_drift = [](double) { return 0.0; };
Shape trend(double all) {
    return [=](double at) { return -all * at; };
}
Shape step(double all) {
    return [=](double at) { return at > 0.45 ? -all : 0; };
}

}  // namespace

TEST_CASE("Student's tails are those of Boost", "[drift]") {
    for (const std::size_t freedom : {1U, 2U, 3U, 4U, 5U, 8U, 13U, 60U})
        for (const double t : {0.0, 0.3, -1.0, 2.5, 6.0})
            CHECK(student_tails(t, freedom) ==
                  Approx(2 * boost::math::cdf(
                                 complement(boost::math::students_t(double(freedom)), std::abs(t))))
                      .margin(1e-12));
}

TEST_CASE("a machine that stays as it is seldom seems to drift, whatever noise is assumed",
          "[drift]") {
    for (const double cv : {0.005, 0.01, 0.02, 0.03})
        for (const double assumed : {0.001, 0.01, 0.1})
            for (const std::size_t others : {0U, 1U, 3U})
                for (const std::size_t checks : {3U, 4U, 6U, 12U}) {
                    INFO("noise " << cv << ", assumed " << assumed << ", " << others << " others, "
                                  << checks << " checks");
                    CHECK(share_found(no_drift, checks, cv, others, assumed) <= 0.065);
                }
    CHECK_FALSE(of_shape(step(1), 2, 0.01, 1).real());  // two measurements cannot tell
}

TEST_CASE("a trend and a step are found", "[drift]") {
    for (const Shape& shape : {trend(0.05), step(0.05)}) {
        CHECK(share_found(shape, 5, 0.01, 3) >= 0.8);
        CHECK(share_found(shape, 7, 0.01, 0) >= 0.8);
    }
    CHECK(share_found(trend(0.1), 5, 0.01, 0) >= 0.8);
    CHECK(share_found(trend(0.15), 6, 0.03, 3) >= 0.8);
    CHECK(share_found(trend(0.1), 6, 0.01, 3, 0.1) >= 0.8);  // too much noise assumed hides nothing
    const Drift drift = of_shape(step(0.1), 6, 0.01, 3);
    CHECK(drift.change() == Approx(0.1).margin(0.02));
}

TEST_CASE("what is taken off is the drift, as well as it is known", "[drift]") {
    // Of the level half way between two checks, off by so many of its stated deviations.
    for (const Shape& shape : {trend(0.1), step(0.1)}) {
        double squares = 0;
        constexpr int runs = 400;
        for (std::uint64_t seed = 0; seed < runs; ++seed) {
            const Drift drift = of_shape(shape, 7, 0.01, seed, 3);
            REQUIRE(drift.real());
            double mean = 0;
            for (int i = 0; i < 7; ++i) mean += shape(i / 6.0) / 7;
            const double off = drift.offset(25) - (shape(25 / 60.0) - mean);
            squares += off * off / drift.variance({25}) / runs;
        }
        CHECK(squares < 1.5);
        CHECK(squares > 0.1);
    }
}

TEST_CASE("far from the checks nothing is known of the level", "[drift]") {
    const Drift drift = of_shape(trend(0.1), 7, 0.01, 2);
    CHECK(drift.variance({60}) < drift.variance({80}));
    CHECK(drift.variance({80}) < drift.variance({160}));
    CHECK(drift.variance({25, 35}) < drift.variance({25}));
}
