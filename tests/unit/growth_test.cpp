// SPDX-License-Identifier: Apache-2.0
// What must not grow with the product of rows, trials and configurations: counted, or against the slow way.
#include "servetune/space/feasible_set.hpp"
#include "servetune/space/neighbours.hpp"
#include "servetune/strategy/random.hpp"
#include "support/brute_force.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Two constraints that speak of conditional parameters, one of them rows.
SearchSpace space_with_rows(std::size_t rows) {
    std::vector<Parameter> parameters{Parameter::choice("method", {"none", "ngram"}),
                                      Parameter::integer("guesses", 1, 6).when("method", {"ngram"}), Parameter::integer("seqs", 1, 12),
                                      Parameter::choice("backend", {"a", "b", "c"}).or_unset(), Parameter::boolean("eager")};
    Rng rng(3);
    Allow allow{{"backend", "guesses", "method", "seqs"}, {}, "measured"};
    while (allow.rows.size() < rows) {
        const bool ngram = rng.index(2) == 1;
        const Value backend = parameters[3].level(rng.index(4));
        allow.rows.insert({backend, ngram ? std::optional<Value>(static_cast<std::int64_t>(1 + rng.index(6))) : std::nullopt,
                           Value(ngram ? "ngram" : "none"), Value(static_cast<std::int64_t>(1 + rng.index(12)))});
    }
    allow.rows.insert({Value(Unset{}), std::nullopt, Value("none"), Value(std::int64_t{1})});  // the default
    allow.rows.insert({Value("no such back end"), std::nullopt, Value("none"), Value(std::int64_t{1})});
    return SearchSpace(std::move(parameters), {allow, require("seqs >= 2 or not eager")});
}

}  // namespace

TEST_CASE("growth: whether a whole configuration is among rows is looked up, not compared with each row") {
    for (const std::size_t rows : {20U, 120U}) {
        const SearchSpace space = space_with_rows(rows);
        const Constraint& allow = space.constraints().front();
        for (const Configuration& configuration : by_brute_force(SearchSpace(space.parameters()))) {
            std::size_t looks = 0;
            const auto slot_of = [&](std::size_t i) {
                ++looks;
                const Value* value = configuration.find(names_of(allow)[i]);
                return Slot{value != nullptr ? Slot::State::active : Slot::State::inactive, value};
            };
            (void)broken(allow, slot_of, [](std::size_t) -> const Value* { return nullptr; });
            CHECK(looks <= names_of(allow).size());
        }
    }
}

TEST_CASE("growth: under rows a feasible set counts, lists, numbers and draws what trying one by one finds") {
    for (const std::size_t rows : {1U, 7U, 60U, 200U}) {
        const SearchSpace space = space_with_rows(rows);
        const std::set<Configuration> expected = by_brute_force(space);
        REQUIRE(!expected.empty());
        const FeasibleSet feasible(space);
        CHECK(feasible.size() == static_cast<double>(expected.size()));
        std::set<Configuration> listed;
        double number = 0;
        feasible.for_each([&](const Configuration& configuration) {
            CHECK(feasible.at(number++) == configuration);
            return listed.insert(configuration).second;
        });
        CHECK(listed == expected);
        Rng rng(5);
        for (int i = 0; i < 50; ++i) {
            CHECK(expected.contains(feasible.sample(rng)));
            std::vector<double> point;
            for (std::size_t d = 0; d < space.parameters().size(); ++d) point.push_back(rng.uniform());
            CHECK(expected.contains(feasible.at_point(point)));
        }
    }
}

TEST_CASE("growth: neighbours are the feasible configurations one step away, though only what a step touches is checked") {
    const SearchSpace space = space_with_rows(120);
    for (const Configuration& from : by_brute_force(SearchSpace(space.parameters()))) {  // infeasible ones too
        std::set<Configuration> expected;
        for (const auto& [name, value] : from.entries()) {
            const Parameter& parameter = space.at(name);
            for (const std::size_t level : adjacent_levels(parameter, *parameter.level_of(value))) {
                const Configuration moved = space.changed(from, {{name, parameter.level(level)}});
                const bool drops = std::any_of(from.entries().begin(), from.entries().end(), [&](const Configuration::Entry& entry) {
                    return moved.find(entry.first) == nullptr && entry.second != space.at(entry.first).default_value;
                });
                if (!drops && space.feasible(moved)) expected.insert(moved);
            }
        }
        const std::vector<Configuration> found = neighbours(space, from);
        CHECK(found == std::vector<Configuration>(expected.begin(), expected.end()));
    }
}

TEST_CASE("growth: random asks draw the same whether the history is sorted or not") {
    const Problem problem(space_with_rows(120), {"total_tokens_per_second"}, {});
    std::vector<Trial> history{{0, problem.space.default_configuration()}};
    std::set<Configuration> seen{history.front().configuration};
    for (std::uint64_t ask = 0; seen.size() < static_cast<std::size_t>(problem.feasible.size()); ++ask) {
        Rng rng(ask);
        Rng same(ask);
        const auto drawn = draw_unseen(problem.feasible, history, rng);
        REQUIRE(drawn);
        if (static_cast<double>(seen.size()) * 2 < problem.feasible.size()) {
            Configuration expected = problem.feasible.sample(same);
            while (seen.contains(expected)) expected = problem.feasible.sample(same);
            CHECK(*drawn == expected);
        }
        CHECK(seen.insert(*drawn).second);
        history.push_back({history.size(), *drawn});
    }
    Rng rng(1);
    CHECK_FALSE(draw_unseen(problem.feasible, history, rng));
}
