// SPDX-License-Identifier: Apache-2.0
// Spaces of long integers under rules, of more configurations than a double counts, and of integers
// on logarithmic scales.
#include "support/brute_force.hpp"
#include "support/test.hpp"

#include "servetune/feasible_set.hpp"
#include "servetune/search_space.hpp"
#include "space/expression_states.hpp"

#include <cmath>
#include <map>
#include <set>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

/// One or two integers of some 130 to 300 levels, two short parameters, one perhaps below a long
/// one, and rules that do more than compare.
SearchSpace random_wide_space(Rng& rng, bool two) {
    std::vector<Parameter> parameters;
    const std::int64_t low = 1 + std::int64_t(rng.index(30));
    const auto wide = [&](const char* name) {
        Parameter one = Parameter::integer(
            name, low, low + 130 + std::int64_t(two ? rng.index(9) : rng.index(170)),
            rng.index(2) == 0 ? Scale::log : Scale::linear);
        if (rng.index(4) == 0)
            one = std::move(one).or_unset(rng.index(2) == 0 ? std::optional<Value>(low + 40)
                                                            : std::nullopt);
        return one;
    };
    parameters.push_back(wide("w"));
    parameters.push_back(Parameter::integer("a", 1, two ? 3 : 6));
    if (rng.index(2) == 0)
        parameters.back() = std::move(parameters.back()).when("w", {low + 7, low + 90});
    parameters.push_back(two ? Parameter::choice("c", {"x", "z"})
                             : Parameter::choice("c", {"x", "y", "z"}));
    if (two) parameters.push_back(wide("v"));
    std::vector<std::string> rules{"w >= 20 * a",
                                   "w % a == 0",
                                   "w / a > 30 or c == 'x'",
                                   "not (w < 50 and a > 2)",
                                   "w in [40, 41, a]",
                                   "w - 2 * a >= 60 or w <= 45 - a",
                                   "a <= 3 or -w < -100",
                                   "w * a != 160",
                                   "c in ['x', 'y'] or w * w < 9000"};
    if (two)
        for (const char* rule :
             {"w <= v", "w + a <= v or c == 'z'", "(w > 90 or a > 3) and (v > 100 or c != 'y')"})
            rules.emplace_back(rule);
    std::vector<Constraint> constraints;
    for (std::size_t i = 1 + rng.index(3); i > 0; --i)
        constraints.push_back(require(rules[rng.index(rules.size())]));
    if (rng.index(3) == 0)
        constraints.emplace_back(Forbid{{{"w", {low + 50, low + 60}}, {"c", {"x", "z"}}}});
    if (rng.index(5) == 0)
        constraints.emplace_back(Allow{
            {"c", "w"},
            {{"x", low + 3}, {"x", low + 90}, {"y", low + 90}, {"z", low + 91}, {"z", Unset{}}}});
    for (Constraint& constraint : constraints)
        std::visit([](auto& rule) { rule.of_larger_space = true; }, constraint);
    return SearchSpace(std::move(parameters), std::move(constraints));
}

/// Of counts and what is expected of each, cells of few put together.
double chi_square_per_cell(const std::vector<double>& counts, const std::vector<double>& expected,
                           double& cells) {
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
double most_of_chi_square(double freedom) {
    return freedom * std::pow(1 - 2 / (9 * freedom) + 3.1 * std::sqrt(2 / (9 * freedom)), 3);
}

}  // namespace

TEST_CASE("wide spaces: counted, listed, numbered and drawn as trying one by one finds") {
    Rng rng(41);
    int not_empty = 0;
    for (int i = 0; i < 40; ++i) {
        const bool two = i % 20 == 7;  // by brute force a hundred thousand
        const SearchSpace space = random_wide_space(rng, two);
        std::string description;
        for (const Parameter& parameter : space.parameters())
            description += parameter.name + ": " + parameter.domain_text() + "\n";
        for (const Constraint& constraint : space.constraints())
            description += text_of(constraint) + "\n";
        INFO(description);
        const std::set<Configuration> expected = by_brute_force(space);
        if (expected.empty()) {
            CHECK_THROWS_AS(FeasibleSet(space), SpaceError);
            continue;
        }
        ++not_empty;
        const FeasibleSet feasible(space);
        REQUIRE(feasible.size() == double(expected.size()));
        auto listed = std::size_t{0};
        bool same = true;
        feasible.for_each([&](const Configuration& one) {
            same = same && expected.contains(one) &&
                   (listed % 37 != 0 || feasible.at(double(listed)) == one);
            ++listed;
            return true;
        });
        CHECK(same);
        CHECK(listed == expected.size());
        for (int k = 0; k < 50; ++k) CHECK(expected.contains(feasible.sample(rng)));
        CHECK(expected.contains(
            feasible.at_point(std::vector<double>(space.parameters().size(), 0.0))));
        CHECK(expected.contains(
            feasible.at_point(std::vector<double>(space.parameters().size(), 1 - 1e-16))));
    }
    CHECK(not_empty > 20);
}

TEST_CASE("wide spaces: a rule that only compares makes few states of many levels") {
    const SearchSpace buffers(
        {Parameter::integer("buffer", 16, 65536, Scale::log).with_default(1024),
         Parameter::integer("threads", 1, 64)},
        {require("buffer >= 4 * threads"), require("buffer <= 1000 * threads or threads > 8")});
    const FeasibleSet feasible(buffers);
    CHECK(feasible.states() < 100);
    double expected = 0;
    for (int threads = 1; threads <= 64; ++threads)
        expected += (threads <= 8 ? 1000.0 * threads : 65536.0) - std::max(4.0 * threads, 16.0) + 1;
    CHECK(feasible.size() == expected);

    const SearchSpace ordered(
        {Parameter::integer("a", 1, 65536), Parameter::integer("b", 1, 65536)},
        {require("a <= b")});
    CHECK(FeasibleSet(ordered).size() == 65536.0 * 65537 / 2);
}

TEST_CASE("wide spaces: a long sum is a state, and a product that would take for ever is refused") {
    std::vector<Parameter> parameters;
    std::string sum;
    std::string product;
    for (int i = 0; i < 12; ++i) {
        const std::string name = "t" + std::to_string(i);
        parameters.push_back(Parameter::integer(name, 1, 10));
        sum += (i == 0 ? "" : " + ") + name;
    }
    CHECK(FeasibleSet(SearchSpace(parameters, {require(sum + " <= 14")})).size() ==
          91);  // C(12 + 2, 2): two ones more
    parameters.clear();
    for (int i = 0; i < 8; ++i) {
        const std::string name = "t" + std::to_string(i);
        parameters.push_back(Parameter::integer(name, 1, 1000));
        product += (i == 0 ? "" : " * ") + name;
    }
    // Each part of a rule is looked at once, however many are above it.
    std::string thirty = "p0";
    for (int i = 1; i < 30; ++i) thirty += " + p" + std::to_string(i);
    const Value one = std::int64_t{1};
    std::size_t looks = 0;
    std::vector<std::uint32_t> words;
    parse_expression(thirty + " == 777")
        .append_state(
            [&](std::size_t i) {
                ++looks;
                return Expression::NameState{i < 15, i < 15 ? &one : nullptr};
            },
            words);
    CHECK(looks == 30);
    CHECK(words.size() == 34);  // 16 open parts, their 15 open names, and the number of the rest
    const SearchSpace hard(parameters, {require(product + " % 7919 == 1")});
    const std::string refused = message_of<SpaceError>([&] { FeasibleSet(hard, 50'000); });
    CHECK(refused.starts_with("the constraints tie too many parameters together"));
    CHECK(has(refused, "1000 values of 't"));
    CHECK(has(refused, "' in 'require t0 * t1"));
    CHECK(has(refused, "give it `step: 16` or a list"));
}

TEST_CASE("wide spaces: beyond 2^53 and beyond all doubles every decision is drawn") {
    for (const int flags : {70, 1200}) {
        std::vector<Parameter> parameters;
        for (int i = 0; i < flags; ++i)
            parameters.push_back(Parameter::boolean("b" + std::to_string(i)));
        parameters.push_back(Parameter::choice("mode", {"x", "y"}).when("b0", {true}));
        // Each of b1 and b2 in one of three, b0 in two of three: what is below counts.
        const SearchSpace space(std::move(parameters), {Forbid{{{"b1", {true}}, {"b2", {true}}}}});
        const FeasibleSet feasible(space);
        CHECK(feasible.size() == 9 * std::pow(2.0, flags - 3));
        Rng rng(1);
        std::map<std::string, int> seen;
        constexpr int draws = 1000;
        for (int i = 0; i < draws; ++i) {
            const Configuration drawn = feasible.sample(rng);
            for (const auto& [name, value] : drawn.entries())
                seen[name] += value == Value(true) ? 1 : 0;
        }
        double chi_square = 0;
        for (int i = 3; i < flags; ++i) {
            const double off = seen["b" + std::to_string(i)] - draws / 2.0;
            chi_square += 4 * off * off / draws;
        }
        CHECK(chi_square < most_of_chi_square(flags - 3));
        for (const char* one_of_three : {"b1", "b2"})
            CHECK(std::abs(seen[one_of_three] - draws / 3.0) < 4 * std::sqrt(draws * 2 / 9.0));
        CHECK(std::abs(seen["b0"] - draws * 2 / 3.0) < 4 * std::sqrt(draws * 2 / 9.0));
    }
}

TEST_CASE(
    "wide spaces: integers on a logarithmic scale are drawn by ratio, with and without a rule") {
    const Parameter log = Parameter::integer("x", 1, 65536, Scale::log);
    CHECK(log.share_below(log.level_count()) == Approx(65536));
    CHECK(log.share_below(255) / 65536 == Approx(0.5).margin(0.02));  // below 256
    for (const double share : {0.0, 0.5, 100.0, 30'000.0, 65'535.9}) {
        const std::size_t level = log.level_at_share(share);
        CHECK(log.share_below(level) <= share);
        CHECK(log.share_below(level + 1) > share);
    }
    for (const bool ruled : {false, true}) {
        std::vector<Constraint> constraints;
        if (ruled) constraints.push_back(require("x >= 10 * n or n > 1000"));
        const SearchSpace space(
            {Parameter::integer("x", 1, 300, Scale::log), Parameter::integer("n", 1, 3)},
            constraints);
        const FeasibleSet feasible(space);
        Rng rng(3);
        const Parameter& x = space.parameters().front();
        std::vector<double> counts(300);
        std::vector<double> expected(300);
        constexpr int draws = 6000;
        for (int i = 0; i < draws; ++i) ++counts[std::size_t(feasible.sample(rng).number("x")) - 1];
        double all = 0;
        for (std::size_t i = 0; i < 300; ++i) {
            const double ways = ruled ? std::min(3.0, std::floor(double(i + 1) / 10)) : 3;
            expected[i] = ways * (x.share_below(i + 1) - x.share_below(i));
            all += expected[i];
        }
        for (double& one : expected) one *= draws / all;
        double cells = 0;
        const double chi_square = chi_square_per_cell(counts, expected, cells);
        CHECK(cells > 40);
        CHECK(chi_square < most_of_chi_square(cells - 1));
    }
    Parameter stepped = Parameter::integer("n", 8, 4000, Scale::log);
    std::get<IntegerDomain>(stepped.domain).step = 8;
    CHECK(stepped.share_below(stepped.level_count()) == Approx(500));
    CHECK(stepped.level(stepped.level_at_position(0.5)) ==
          Value(std::int64_t{176}));  // sqrt(8 * 4000) = 178.9
}

TEST_CASE(
    "wide spaces: steps on a logarithmic scale are ratios, on a long linear one parts of it") {
    const SearchSpace space({Parameter::integer("x", 1, 65536, Scale::log).with_default(4096)});
    const auto values = [&](std::int64_t from) {
        std::vector<double> result;
        for (const Configuration& one : neighbours(space, space.completed({{"x", from}})))
            result.push_back(one.number("x"));
        return result;
    };
    CHECK(values(4096) ==
          std::vector<double>{1351, 3666, 4576, 12417});  // 65536^0.1 = 3.03, 65536^0.01 = 1.117
    CHECK(values(1) == std::vector<double>{2, 3});
    CHECK(values(65536) == std::vector<double>{21619, 58656});
    const Parameter few = Parameter::integer("x", 1, 8, Scale::log);
    CHECK(adjacent_levels(few, 3) == std::vector<std::size_t>{2, 4});
    CHECK(adjacent_levels(Parameter::integer("x", 0, 100'000), 50'000) ==
          std::vector<std::size_t>{40'000, 49'000, 51'000, 60'000});
    CHECK(spread_levels(Parameter::integer("x", 1, 65536, Scale::log), 5) ==
          std::vector<std::size_t>{0, 15, 255, 4095, 65535});
}

TEST_CASE("wide spaces: a real that may be left to the engine is drawn from its whole scale") {
    const SearchSpace space({Parameter::real("x", 0, 1).or_unset(), Parameter::boolean("b")});
    const FeasibleSet feasible(space);
    double lowest = 1;
    int unset = 0;
    for (int i = 0; i < 100; ++i) {
        const Configuration one = feasible.at_point({(i + 0.5) / 100, 0.5});
        if (is_unset(*one.find("x"))) ++unset;
        else lowest = std::min(lowest, one.number("x"));
    }
    CHECK(unset == 50);
    CHECK(lowest < 0.02);
}

TEST_CASE("wide spaces: a name in a list is unknown until it is decided") {
    const SearchSpace space({Parameter::integer("a", 1, 3), Parameter::integer("b", 1, 3)},
                            {require("a in [b, 3]")});
    CHECK(FeasibleSet(space).size() == 5);  // a = b, and a = 3 with any other
}
