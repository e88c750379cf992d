// SPDX-License-Identifier: Apache-2.0
// A start after which the effects of any two flags can be told apart.
#include "search/identifiable.hpp"

#include "search/start_design.hpp"
#include "servetune/bayesian.hpp"
#include "support/test.hpp"

#include <map>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Two-valued parameters, others of several values, and some rules, as the seed says.
SearchSpace some_space(Rng& rng, std::size_t of_two) {
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < of_two; ++i)
        parameters.push_back(Parameter::boolean("flag" + std::to_string(i)));
    for (std::size_t i = 0; i < 1 + rng.index(5); ++i)
        parameters.push_back(
            Parameter::integer("number" + std::to_string(i), 1, std::int64_t(4 + rng.index(20))));
    std::vector<Constraint> rules;
    if (of_two > 3 && rng.index(2) == 0)
        rules.emplace_back(Forbid{{{"flag0", {true}}, {"flag1", {true}}}, "not together"});
    return SearchSpace(std::move(parameters), std::move(rules));
}

/// The number of pairs of flags that had the same values in every trial.
std::size_t alike(const std::vector<Configuration>& trials, std::size_t of_two) {
    std::map<std::vector<bool>, std::size_t> columns;
    for (std::size_t i = 0; i < of_two; ++i) {
        std::vector<bool> column;
        for (const Configuration& trial : trials)
            column.push_back(std::get<bool>(*trial.find("flag" + std::to_string(i))));
        ++columns[column];
    }
    std::size_t pairs = 0;
    for (const auto& [column, count] : columns) pairs += count * (count - 1) / 2;
    return pairs;
}

}  // namespace

TEST_CASE(
    "told apart: after the start of a search no two flags had the same values in every trial") {
    Rng rng(7);
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const std::size_t of_two = 2 + rng.index(14);
        const SearchSpace space = some_space(rng, of_two);
        const Problem problem(space, {"rate"}, {});
        BayesianOptions options;
        options.trials = 30;
        options.seed = seed;
        const Bayesian search(options);
        const std::size_t start = start_trials(space.parameters().size(), 30);
        std::vector<Trial> history;
        std::vector<Configuration> tried;
        for (std::size_t i = 0; i < start; ++i) {
            const Proposal proposal = std::get<Proposal>(search.ask(problem, history, rng));
            history.push_back({i, proposal.configuration, "", 0, proposal.why,
                               Measurement{{{"rate", {100.0 + rng.uniform()}}}}});
            tried.push_back(proposal.configuration);
        }
        INFO(of_two << " flags, " << start << " trials, seed " << seed);
        CHECK(alike(tried, of_two) == 0);
    }
}

TEST_CASE("told apart: a trial changes as few as it can, and one that failed tells nothing") {
    std::vector<std::string> names;
    std::vector<Parameter> parameters;
    for (int i = 0; i < 6; ++i) {
        names.push_back("flag" + std::to_string(i));
        parameters.push_back(Parameter::boolean(names.back()));
    }
    const SearchSpace space(parameters);
    const Configuration usual = space.default_configuration();
    // As many trials as flags: one each, the first first.
    CHECK(to_tell_apart(names, usual, {usual}, 6) == std::vector<std::string>{"flag0"});
    CHECK(to_tell_apart(names, usual, {usual, space.changed(usual, {{"flag0", true}})}, 5) ==
          std::vector<std::string>{"flag1"});
    // Three trials have room for seven sets: three of one, three of two; that is three a trial.
    CHECK(to_tell_apart(names, usual, {usual}, 3).size() == 3);
    // All are told apart: nothing more to change.
    std::vector<Configuration> all{usual};
    for (const std::string& name : names) all.push_back(space.changed(usual, {{name, true}}));
    CHECK(to_tell_apart(names, usual, all, 2).empty());
    // Of what always fails with another flag nothing is promised, and nothing hangs.
    CHECK(two_valued(SearchSpace(parameters, {Forbid{{{"flag2", {true}}}, "never"}}),
                     {0, 1, 2, 3, 4, 5})
              .size() == 5);
}
