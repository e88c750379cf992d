// SPDX-License-Identifier: Apache-2.0
// Draws from the whole space of each engine that ships: every level of every parameter as often as
// it should be.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/detail/engine/composition.hpp"
#include "servetune/feasible_set.hpp"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr int draws_of_a_space = 500;

/// How probable such a deviation is (Wilson and Hilferty 1931). Cells of less than 5 are one.
double probability(const std::vector<double>& counts, const std::vector<double>& expected) {
    double sum = 0;
    double few = 0;
    double few_expected = 0;
    double freedom = -1;
    const auto add = [&](double count, double wanted) {
        sum += (count - wanted) * (count - wanted) / wanted;
        ++freedom;
    };
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (expected[i] >= 5) add(counts[i], expected[i]);
        else {
            few += counts[i];
            few_expected += expected[i];
        }
    if (few_expected > 1) add(few, few_expected);
    if (freedom < 1) return 1;
    const double z =
        (std::cbrt(sum / freedom) - 1 + 2 / (9 * freedom)) / std::sqrt(2 / (9 * freedom));
    return 0.5 * std::erfc(z / std::sqrt(2));
}

/// `ruled`: also the parameters that rules tie to others.
void check_draws(bool ruled) {
    double tests = 0;
    double least = 1;
    for (const Engine& engine : shipped_catalogue.engines()) {
        INFO(engine.name);
        SpaceDescription description{{engine}};
        description.devices = DeviceLimit{1, true};
        const Composition composition(std::move(description));
        const SearchSpace space(composition.parameters(), composition.constraints());
        const FeasibleSet feasible(space);
        std::map<std::string, std::map<Value, double>> seen;
        std::map<std::string, double> active;
        Rng rng(1);
        for (int i = 0; i < draws_of_a_space; ++i) {
            const Configuration drawn = feasible.sample(rng);
            for (const auto& [name, value] : drawn.entries()) {
                ++active[name];
                ++seen[name][value];
            }
        }
        std::map<std::string, bool> is_parent;
        for (const Parameter& parameter : space.parameters())
            for (const Condition& condition : parameter.active_when)
                is_parent[condition.parent] = true;
        for (std::size_t i = 0; i < space.parameters().size(); ++i) {
            const Parameter& parameter = space.parameters()[i];
            INFO(parameter.name);
            REQUIRE_FALSE(parameter.by_ratio());  // each level of it would weigh otherwise
            std::vector<double> counts;
            std::vector<double> expected;
            const bool free = space.constraints_of(i).empty() && !is_parent[parameter.name];
            if (!free && !ruled) continue;
            double in_space = 0;
            // Of many levels neighbours are one cell: each cell costs a count of the whole space.
            const std::size_t levels = parameter.level_count();
            const std::size_t cells = free ? levels : std::min<std::size_t>(levels, 8);
            for (std::size_t cell = 0; cell < cells; ++cell) {
                std::set<Allow::Row> rows;
                double count = 0;
                for (std::size_t level = cell * levels / cells; level < (cell + 1) * levels / cells;
                     ++level) {
                    rows.insert({parameter.level(level)});
                    count += seen[parameter.name][parameter.level(level)];
                }
                counts.push_back(count);
                if (free) {  // all alike where it is active
                    const double choices = double(levels) + (parameter.continuous() ? 1 : 0);
                    expected.push_back(active[parameter.name] / choices);
                    continue;
                }
                std::vector<Constraint> and_these = space.constraints();
                and_these.emplace_back(Allow{{parameter.name}, std::move(rows)});
                double share = 0;
                try {
                    const SearchSpace part(space.parameters(), std::move(and_these));
                    share = FeasibleSet(part).size() / feasible.size();
                } catch (const SpaceError&) {  // none of them
                    CHECK(count == 0);
                }
                in_space += share;
                expected.push_back(draws_of_a_space * share);
            }
            double shown = 0;
            for (const double count : counts) shown += count;
            const double others =
                (free ? active[parameter.name] : draws_of_a_space) - shown;  // a real, or inactive
            if (!free || parameter.continuous()) {
                counts.push_back(others);
                expected.push_back(free ? active[parameter.name] /
                                              (double(parameter.level_count()) + 1)
                                        : draws_of_a_space * std::max(1 - in_space, 0.0));
            }
            ++tests;
            const double found = probability(counts, expected);
            least = std::min(least, found);
            CHECK(found > 0.001 / 400);  // some 300 parameters in all
        }
    }
    CHECK(tests > (ruled ? 200 : 100));
    CHECK(tests <= 400);
    CHECK(least * tests > 0.001);
}

}  // namespace

TEST_CASE("even draws: each level of each parameter without rules of every shipped engine") {
    check_draws(false);
}

TEST_CASE(
    "even draws: every level of every parameter of every shipped engine, as its share of the space",
    "[.long]") {
    check_draws(true);
}
