// SPDX-License-Identifier: Apache-2.0
#include "study/comparison.hpp"
#include "servetune/detail/base/rng.hpp"
#include "support/test.hpp"

#include <cmath>
#include <iostream>
#include <map>

using namespace servetune;
using namespace servetune::test;

namespace {

using CompareEnd = Comparison::Verdict;

struct Compared {
    std::map<CompareEnd, std::size_t> ended{};
    double pairs = 0;        ///< on average
    std::size_t missed = 0;  ///< the truth is outside the interval at the end
};

/// B is so much better than A, each measurement has this noise; of `runs` comparisons.
Compared compared(double effect, double cv, int runs, Comparison::Options options = {}) {
    Compared result;
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(runs); ++seed) {
        Rng rng(seed);
        Comparison comparison(options);
        while (comparison.open()) comparison.add(std::log1p(effect) + cv * (rng.normal() - rng.normal()));
        ++result.ended[comparison.verdict()];
        result.pairs += static_cast<double>(comparison.pairs()) / runs;
        const Gain gain = comparison.gain();
        result.missed += effect < gain.low || effect > gain.high ? 1 : 0;
    }
    return result;
}

}  // namespace

TEST_CASE("comparison: what is the same is seldom called better or worse, however often one looks", "[decision]") {
    for (const double cv : {0.003, 0.01, 0.1}) {
        Compared same = compared(0, cv, 2000);
        CHECK(same.ended[CompareEnd::better] + same.ended[CompareEnd::worse] <= 110);
        CHECK(same.missed <= 110);
    }
    CHECK(compared(0, 0.002, 500).ended[CompareEnd::same] >= 490);
}

TEST_CASE("comparison: a difference is found, and never the wrong way round", "[decision]") {
    Compared clear = compared(0.1, 0.01, 500);
    CHECK(clear.ended[CompareEnd::better] == 500);
    CHECK(clear.pairs < 5);
    Compared slower = compared(-0.03, 0.01, 500);
    CHECK(slower.ended[CompareEnd::worse] >= 450);
    CHECK(slower.ended[CompareEnd::better] == 0);
}

TEST_CASE("comparison: two pairs say nothing, and options that cannot be are refused", "[decision]") {
    Comparison comparison({});
    comparison.add(1);
    CHECK(std::isinf(comparison.gain().high));
    comparison.add(1);
    CHECK(comparison.open());
    CHECK_THROWS_AS(Comparison({.least_pairs = 1}), UsageError);
    CHECK_THROWS_AS(Comparison({.least_pairs = 5, .most_pairs = 4}), UsageError);
    CHECK_THROWS_AS(Comparison({.margin = -1}), UsageError);
    CHECK(student_quantile(0.05, 10) == Approx(2.2281389));
}

TEST_CASE("comparison: 200 pairs of configurations at each effect and noise", "[.long]") {
    std::cout << "| B is better by | noise | better | worse | same | undecided | pairs | interval misses "
                 "|\n|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    for (const double cv : {0.01, 0.03})
        for (const double effect : {0.0, 0.01, 0.03, 0.1}) {
            Compared all = compared(effect, cv, 200);
            std::cout << "| " << effect * 100 << " % | " << cv * 100 << " % | " << all.ended[CompareEnd::better] << " | "
                      << all.ended[CompareEnd::worse] << " | " << all.ended[CompareEnd::same] << " | " << all.ended[CompareEnd::undecided]
                      << " | " << all.pairs << " | " << all.missed << " |\n";
            CHECK(all.missed <= 16);
        }
}
