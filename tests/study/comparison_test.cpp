// SPDX-License-Identifier: Apache-2.0
#include "study/comparison.hpp"
#include "servetune/rng.hpp"
#include "support/test.hpp"

#include <array>
#include <cmath>
#include <cstdio>
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
    for (std::uint64_t seed = 0; seed < std::uint64_t(runs); ++seed) {
        Rng rng(seed);
        Comparison comparison(options);
        while (comparison.open())
            comparison.add(std::log1p(effect) + cv * (rng.normal() - rng.normal()));
        ++result.ended[comparison.verdict()];
        result.pairs += double(comparison.pairs()) / runs;
        const Gain gain = comparison.gain();
        result.missed += effect < gain.low || effect > gain.high ? 1 : 0;
    }
    return result;
}

/// How a machine disturbs the measurements of a gate, beside the noise of each.
enum class GateDrift { none, even, walk, heavy_tails };
constexpr std::array<std::pair<GateDrift, std::string_view>, 4> gate_drifts{
    {{GateDrift::none, "none"},
     {GateDrift::even, "even, 8 %"},
     {GateDrift::walk, "random walk"},
     {GateDrift::heavy_tails, "heavy tails"}}};

/// A gate in the order A B, B A, A B, whose B gains `effect`; `cv` is the noise of a measurement.
/// Even drift: 8 % over the first 20 measurements; random walk: steps of half the noise between
/// measurements; heavy tails: noise by Student's t with 3 degrees of freedom, of the same variance.
CompareEnd gated(double effect, double cv, GateDrift drift, const Comparison::Options& options,
                 Rng& rng) {
    Comparison comparison(options);
    double level = 0;
    const auto noise = [&] {
        if (drift != GateDrift::heavy_tails) return cv * rng.normal();
        const double freedom = 2 * rng.gamma(1.5);  // chi-square of 3
        return cv * rng.normal() /
               std::sqrt(freedom);  // variance of t_3 is 3: / sqrt(freedom / 3) / sqrt(3)
    };
    const auto measured = [&] {
        level += drift == GateDrift::even   ? 0.08 / 20
                 : drift == GateDrift::walk ? 0.5 * cv * rng.normal()
                                            : 0;
        return level + noise();
    };
    while (comparison.open()) {
        const double first = measured();
        const double second = measured();
        const double b_over_a = comparison.pairs() % 2 == 0 ? second - first : first - second;
        comparison.add(std::log1p(effect) + b_over_a);
    }
    return comparison.verdict();
}

/// Of `runs` gates: how many pass, and how many fail.
std::pair<std::size_t, std::size_t> gates(double effect, double cv, GateDrift drift,
                                          const Comparison::Options& options, int runs) {
    std::pair<std::size_t, std::size_t> result{};
    Rng rng(derive_seed(45, std::uint64_t(1e6 * (cv + options.margin)) + std::uint64_t(drift)));
    for (int run = 0; run < runs; ++run) {
        const CompareEnd end = gated(effect, cv, drift, options, rng);
        result.first += end == CompareEnd::not_worse ? 1 : 0;
        result.second += end == CompareEnd::worse ? 1 : 0;
    }
    return result;
}

/// `1.5 (1.2 to 1.8)`: a share in percent with its 90 % interval (Wilson, 1927).
std::string share_text(std::size_t count, int runs) {
    constexpr double z = 1.6448536;
    const double n = runs;
    const double p = double(count) / n;
    const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    const double reach = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    std::array<char, 64> text{};
    (void)std::snprintf(text.data(), text.size(), "%.2f (%.2f to %.2f)", 100 * p,
                        100 * std::max(0.0, middle - reach), 100 * (middle + reach));
    return text.data();
}

}  // namespace

TEST_CASE("comparison: what is the same is seldom called better or worse, however often one looks",
          "[decision]") {
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

TEST_CASE(
    "comparison: a gate passes or fails wrongly in at most 2.5 % at the margin, however often one "
    "looks",
    "[decision]") {
    constexpr int runs = 1000;
    constexpr std::size_t most = 40;  // 25, and three deviations
    Comparison::Options options{.margin = 0.03, .question = Comparison::Question::not_worse};
    for (const double cv : {0.005, 0.03})
        for (const auto& [drift, name] : gate_drifts) {
            INFO("noise " << cv << ", drift " << name);
            const auto [passed, failed] = gates(-options.margin, cv, drift, options, runs);
            CHECK(passed <= most);
            CHECK(failed <= most);
            CHECK(gates(-2 * options.margin, cv, drift, options, runs).first <= most);
            CHECK(gates(0, cv, drift, options, runs).second <= most);
        }
    // With three times the noise as margin ten pairs suffice: equal ones pass, one that loses twice
    // the margin fails.
    CHECK(gates(0, 0.01, GateDrift::none, options, 500).first >= 440);
    CHECK(gates(-0.06, 0.01, GateDrift::none, options, 500).second >= 440);
    CHECK(gates(0, 0.005, GateDrift::even, options, 500).first >= 440);
    // One of several checks has a part of the error, and so a wider interval.
    options.error = 0.01;
    CHECK(gates(-options.margin, 0.01, GateDrift::none, options, runs).first <= 13);
    CHECK_THROWS_AS(Comparison({.error = 0}), UsageError);
    CHECK_THROWS_AS(Comparison({.error = 1}), UsageError);
}

TEST_CASE("comparison: two pairs say nothing, and options that cannot be are refused",
          "[decision]") {
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
    std::cout
        << "| B is better by | noise | better | worse | same | undecided | pairs | interval misses "
           "|\n|---:|---:|---:|---:|---:|---:|---:|---:|\n";
    for (const double cv : {0.01, 0.03})
        for (const double effect : {0.0, 0.01, 0.03, 0.1}) {
            Compared all = compared(effect, cv, 200);
            std::cout << "| " << effect * 100 << " % | " << cv * 100 << " % | "
                      << all.ended[CompareEnd::better] << " | " << all.ended[CompareEnd::worse]
                      << " | " << all.ended[CompareEnd::same] << " | "
                      << all.ended[CompareEnd::undecided] << " | " << all.pairs << " | "
                      << all.missed << " |\n";
            CHECK(all.missed <= 16);
        }
}

TEST_CASE("comparison: 20000 gates at each drift and noise", "[.long]") {
    constexpr int runs = 20000;
    std::cout << "Margin 3 %; shares in % with their 90 % interval.\n"
                 "| pairs, drift | noise | equal: pass | equal: fail | at the margin: pass | at "
                 "the margin: fail | twice the margin: pass "
                 "| fail |\n"
                 "|---|---:|---:|---:|---:|---:|---:|---:|\n";
    for (const std::size_t pairs : {10U, 20U})
        for (const auto& [drift, name] : gate_drifts)
            for (const double cv : {0.005, 0.01, 0.02, 0.03}) {
                const Comparison::Options options{.margin = 0.03,
                                                  .most_pairs = pairs,
                                                  .question = Comparison::Question::not_worse};
                std::cout << "| " << pairs << " pairs, " << name << " | " << cv * 100 << " % |";
                for (const double effect : {0.0, -0.03, -0.06}) {
                    const auto [passed, failed] = gates(effect, cv, drift, options, runs);
                    std::cout << " " << share_text(passed, runs) << " | "
                              << share_text(failed, runs) << " |";
                    constexpr std::size_t most = 566;  // 2.5 %, and three deviations
                    if (effect < 0) CHECK(passed <= most);
                    if (effect > -0.06) CHECK(failed <= most);
                }
                std::cout << std::endl;
            }
}
