// SPDX-License-Identifier: Apache-2.0
// Spaces of long integers under rules, of more configurations than a double counts, and of integers on logarithmic
// scales.
#include "support/brute_force.hpp"
#include "support/test.hpp"

#include "servetune/space/feasible_set.hpp"
#include "servetune/space/neighbours.hpp"

#include <cmath>
#include <map>
#include <set>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

/// One or two integers of some 130 to 300 levels, two short parameters, one perhaps below a long one, and rules that do
/// more than compare.
SearchSpace random_wide_space(Rng& rng) {
    std::vector<Parameter> parameters;
    const std::int64_t low = 1 + static_cast<std::int64_t>(rng.index(30));
    const auto wide = [&](const char* name) {
        Parameter one = Parameter::integer(name, low, low + 130 + static_cast<std::int64_t>(rng.index(170)),
                                           rng.index(2) == 0 ? Scale::log : Scale::linear);
        if (rng.index(4) == 0) one = std::move(one).or_unset(rng.index(2) == 0 ? std::optional<Value>(low + 40) : std::nullopt);
        return one;
    };
    parameters.push_back(wide("w"));
    parameters.push_back(Parameter::integer("a", 1, 6));
    if (rng.index(2) == 0) parameters.back() = std::move(parameters.back()).when("w", {low + 7, low + 90});
    parameters.push_back(Parameter::choice("c", {"x", "y", "z"}));
    const bool two = rng.index(3) == 0;
    if (two) parameters.push_back(wide("v"));
    std::vector<std::string> rules{"w >= 20 * a",         "w % a == 0",       "w / a > 30 or c == 'x'",
                                   "not (w < 50 and a > 2)", "w in [40, 41, a]", "w - 2 * a >= 60 or w <= 45 - a",
                                   "a <= 3 or -w < -100", "w * a != 160",     "c in ['x', 'y'] or w * w < 9000"};
    if (two)
        for (const char* rule : {"w <= v", "w + a <= v or c == 'z'", "(w > 90 or a > 3) and (v > 100 or c != 'y')"}) rules.emplace_back(rule);
    std::vector<Constraint> constraints;
    for (std::size_t i = 1 + rng.index(3); i > 0; --i) constraints.push_back(require(rules[rng.index(rules.size())]));
    if (rng.index(3) == 0) constraints.emplace_back(Forbid{{{"w", {low + 50, low + 60}}, {"c", {"x", "z"}}}});
    if (rng.index(5) == 0)
        constraints.emplace_back(Allow{{"c", "w"}, {{"x", low + 3}, {"x", low + 90}, {"y", low + 90}, {"z", low + 91}, {"z", Unset{}}}});
    return SearchSpace(std::move(parameters), std::move(constraints));
}

/// Of counts and what is expected of each, cells of few put together.
double chi_square_per_cell(const std::vector<double>& counts, const std::vector<double>& expected, double& cells) {
    double sum = 0;
    double few = 0;
    double few_expected = 0;
    cells = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        few += counts[i];
        few_expected += expected[i];
        if (few_expected < 10) continue;
        sum += (few - few_expected) * (few - few_expected) / few_expected;
        few = few_expected = 0;
        ++cells;
    }
    return sum;
}

/// Three standard deviations beyond the mean (Wilson and Hilferty 1931).
double most_of_chi_square(double freedom) { return freedom * std::pow(1 - 2 / (9 * freedom) + 3.1 * std::sqrt(2 / (9 * freedom)), 3); }

}  // namespace

TEST_CASE("wide spaces: counted, listed, numbered and drawn as trying one by one finds") {
    Rng rng(41);
    int not_empty = 0;
    for (int i = 0; i < 60; ++i) {
        const SearchSpace space = random_wide_space(rng);
        std::string description;
        for (const Parameter& parameter : space.parameters()) description += parameter.name + ": " + parameter.domain_text() + "\n";
        for (const Constraint& constraint : space.constraints()) description += text_of(constraint) + "\n";
        INFO(description);
        if (space.find("v") != nullptr && i % 4 != 0) continue;  // by brute force a million
        const std::set<Configuration> expected = by_brute_force(space);
        if (expected.empty()) {
            CHECK_THROWS_AS(FeasibleSet(space), SpaceError);
            continue;
        }
        ++not_empty;
        const FeasibleSet feasible(space);
        REQUIRE(feasible.size() == static_cast<double>(expected.size()));
        auto listed = std::size_t{0};
        bool same = true;
        feasible.for_each([&](const Configuration& one) {
            same = same && expected.contains(one) && (listed % 37 != 0 || feasible.at(static_cast<double>(listed)) == one);
            ++listed;
            return true;
        });
        CHECK(same);
        CHECK(listed == expected.size());
        for (int k = 0; k < 50; ++k) CHECK(expected.contains(feasible.sample(rng)));
        CHECK(expected.contains(feasible.at_point(std::vector<double>(space.parameters().size(), 0.0))));
        CHECK(expected.contains(feasible.at_point(std::vector<double>(space.parameters().size(), 1 - 1e-16))));
    }
    CHECK(not_empty > 25);
}
