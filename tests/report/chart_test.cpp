// SPDX-License-Identifier: Apache-2.0
// Axes of any figures: a chart comes to its end, whatever is drawn.
#include "support/test.hpp"

#include "report/chart.hpp"

#include <cmath>
#include <limits>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr double no_bound = std::numeric_limits<double>::infinity();

std::string chart_of(const std::vector<double>& values) {
    Chart chart("title", "description", axis_for("x", values), axis_for("y", values, true));
    for (const double value : values) chart.mark({{value, value}, "passing", "label"});
    return chart.svg();
}

}  // namespace

TEST_CASE("chart: round ticks, at even distances") {
    CHECK(round_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
    CHECK(round_ticks(-1, 1, 4) == std::vector<double>{-1, -0.5, 0, 0.5, 1});
    CHECK(round_ticks(0, 3, 7, 1) == std::vector<double>{0, 1, 2, 3});
    CHECK(tick_text(1.5, 0.5) == "1.5");
}

TEST_CASE("chart: figures that differ by their rounding have no range, and few ticks") {
    const std::vector<double> one_ulp{1, std::nextafter(1, 2)};
    const ChartAxis axis = axis_for("", one_ulp);
    CHECK(axis.low == Approx(0.95));
    CHECK(axis.high == Approx(1.05));
    for (const double value :
         {123.456, 123.456 / 7, 1e-100, 1e100, 1e-9, -5.0, 1.0, 9007199254740993.0})
        for (const double next :
             {value, std::nextafter(value, no_bound), std::nextafter(value, -no_bound),
              value * (1 + 1e-12), value * (1 + 1e-8)}) {
            INFO(value << " and " << next);
            const auto ticks = round_ticks(std::min(value, next), std::max(value, next));
            CHECK(ticks.size() >= 2);
            CHECK(ticks.size() <= 24);
            const std::string svg = chart_of({value, next});
            CHECK(svg.size() < 20'000);
            CHECK_FALSE(has(svg, "nan"));
            CHECK_FALSE(has(svg, "inf"));
        }
}

TEST_CASE("chart: a gain by one measurement each has no interval, and none is drawn") {
    const std::string drawn = interval_chart("t", {{"known", 0.1, 0.2, 0.3}});
    CHECK(has(drawn, "<td>+20.0 % [+10.0 %, +30.0 %]</td>"));
    CHECK(has(drawn, "class=\"line\""));
    const std::string single = interval_chart("t", {{"once", -no_bound, 0.357, no_bound}});
    CHECK(has(single, "<td>+35.7 %</td>"));
    CHECK_FALSE(has(single, "class=\"line\""));
    CHECK_FALSE(has(single, "inf"));
}

TEST_CASE("chart: ranges without a size, or beyond all sizes, have two ticks") {
    for (const auto& [low, high] : std::vector<std::pair<double, double>>{{0, 0},
                                                                          {5, 5},
                                                                          {5, 4},
                                                                          {-no_bound, no_bound},
                                                                          {-1e308, 1e308},
                                                                          {std::nan(""), 1},
                                                                          {0, 5e-324}}) {
        const auto ticks = round_ticks(low, high);
        CHECK(ticks.size() >= 2);
        CHECK(ticks.size() <= 24);
        CHECK(tick_text(1, ticks[1] - ticks[0]).size() < 40);
    }
    CHECK(round_ticks(0, 1e-300, 6, 1) ==
          std::vector<double>{0, 1e-300});  // a least step larger than the range
}
