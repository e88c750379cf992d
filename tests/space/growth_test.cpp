// SPDX-License-Identifier: Apache-2.0
// What must not grow with the product of rows, trials and configurations: counted, or against the
// slow way.
#include "servetune/feasible_set.hpp"
#include "servetune/search_space.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/study.hpp"
#include "support/brute_force.hpp"
#include "support/test.hpp"

#include <algorithm>
#include <map>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Two constraints that speak of conditional parameters, one of them rows.
SearchSpace space_with_rows(std::size_t rows) {
    std::vector<Parameter> parameters{Parameter::choice("method", {"none", "ngram"}),
                                      Parameter::integer("guesses", 1, 6).when("method", {"ngram"}),
                                      Parameter::integer("seqs", 1, 12),
                                      Parameter::choice("backend", {"a", "b", "c"}).or_unset(),
                                      Parameter::boolean("eager")};
    Rng rng(3);
    Allow allow{{"backend", "guesses", "method", "seqs"}, {}, "measured", true};
    while (allow.rows.size() < rows) {
        const bool ngram = rng.index(2) == 1;
        const Value backend = parameters[3].level(rng.index(4));
        allow.rows.insert(
            {backend, ngram ? std::optional<Value>(std::int64_t(1 + rng.index(6))) : std::nullopt,
             Value(ngram ? "ngram" : "none"), Value(std::int64_t(1 + rng.index(12)))});
    }
    allow.rows.insert(
        {Value(Unset{}), std::nullopt, Value("none"), Value(std::int64_t{1})});  // the default
    allow.rows.insert(
        {Value("no such back end"), std::nullopt, Value("none"), Value(std::int64_t{1})});
    return SearchSpace(std::move(parameters), {allow, require("seqs >= 2 or not eager")});
}

}  // namespace

TEST_CASE(
    "growth: whether a whole configuration is among rows is looked up, not compared with each "
    "row") {
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

TEST_CASE(
    "growth: under rows a feasible set counts, lists, numbers and draws what trying one by one "
    "finds") {
    for (const std::size_t rows : {1U, 7U, 60U, 200U}) {
        const SearchSpace space = space_with_rows(rows);
        const std::set<Configuration> expected = by_brute_force(space);
        REQUIRE(!expected.empty());
        const FeasibleSet feasible(space);
        CHECK(feasible.size() == double(expected.size()));
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
            for (std::size_t d = 0; d < space.parameters().size(); ++d)
                point.push_back(rng.uniform());
            CHECK(expected.contains(feasible.at_point(point)));
        }
    }
}

TEST_CASE(
    "growth: neighbours are the feasible configurations one step away, though only what a step "
    "touches is checked") {
    const SearchSpace space = space_with_rows(120);
    for (const Configuration& from :
         by_brute_force(SearchSpace(space.parameters()))) {  // infeasible ones too
        std::set<Configuration> expected;
        for (const auto& [name, value] : from.entries()) {
            const Parameter& parameter = space.at(name);
            for (const std::size_t level : adjacent_levels(parameter, *parameter.level_of(value))) {
                const Configuration moved = space.changed(from, {{name, parameter.level(level)}});
                const bool drops = any_of(from.entries(), [&](const Configuration::Entry& entry) {
                    return moved.find(entry.first) == nullptr &&
                           entry.second != space.at(entry.first).default_value;
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
    for (std::uint64_t ask = 0; seen.size() < std::size_t(problem.feasible.size()); ++ask) {
        Rng rng(ask);
        Rng same(ask);
        const auto drawn = draw_unseen(problem.feasible, history, rng);
        REQUIRE(drawn);
        if (double(seen.size()) * 2 < problem.feasible.size()) {
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

TEST_CASE("growth: what a study keeps of its trials is what a walk through all of them finds") {
    const Problem problem(
        SearchSpace({Parameter::integer("n", 1, 12), Parameter::choice("mode", {"a", "b"})}), {"x"},
        {});
    const Random random;
    MemoryJournal journal;
    double now = 0;
    Study::Options options;
    options.now = [&] { return now; };
    Study study(problem, random, journal, options);
    Rng rng(11);
    const auto check = [&] {
        const std::vector<Trial>& trials = study.trials();
        std::size_t told = 0;
        std::map<Configuration, std::uint64_t> oldest_open;
        for (const Trial& trial : trials) {
            told += trial.told() ? 1 : 0;
            if (!trial.told()) oldest_open.try_emplace(trial.configuration, trial.id);
        }
        REQUIRE(study.told_in_search() == told);
        for (const Trial& trial : trials) {
            const auto* found = entry_in(oldest_open, trial.configuration);
            REQUIRE(study.open_trial(trial.configuration) ==
                    (found == nullptr ? std::nullopt : std::optional(*found)));
        }
    };
    std::vector<std::uint64_t> in_hand;
    for (int step = 0; step < 300; ++step) {
        now += 1;
        if (in_hand.empty() || rng.index(2) == 0) {
            const Trial trial = study.propose(problem.feasible.sample(rng), "by hand");
            const auto same = count_if(study.trials(), [&](const Trial& other) {
                return other.configuration == trial.configuration;
            });
            CHECK(trial.seed == derive_seed(0, std::uint64_t(same - 1)));
            in_hand.push_back(trial.id);
            if (rng.index(3) == 0) study.start(trial.id);
        } else {
            const std::size_t which = rng.index(in_hand.size());
            study.tell(in_hand[which], Measurement{{{"x", {1 + rng.uniform()}}}});
            in_hand.erase(in_hand.begin() + std::ptrdiff_t(which));
        }
        check();
    }
    double longest = 0;
    for (const Trial& trial : study.trials()) longest = std::max(longest, trial.cost_seconds());
    REQUIRE(longest > 2);
    Budget until;
    until.until = now + longest;
    CHECK_FALSE(study.spent({100'000}, 0));
    until.trials = 100'000;
    CHECK_FALSE(study.spent(until, 0));
    until.until -= 0.5;
    CHECK(study.spent(until, 0) == StopReason::deadline);
    Study again(problem, random, journal, options);
    CHECK(again.told_in_search() == study.told_in_search());
    CHECK(again.in_hand() == 0);
    while (again.in_hand() < 3 && again.ask()) {
    }
    CHECK(again.in_hand() == 3);
}
