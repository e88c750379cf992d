// SPDX-License-Identifier: Apache-2.0
// The start of a performance engineer: each engine at its own defaults, before anything else is
// changed.
#include "search/start_design.hpp"
#include "servetune/bayesian.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Three engines with parameters of their own. Everything of `a` works.
SearchSpace three_engines() {
    std::vector<Parameter> parameters{Parameter::choice("engine", {"a", "b", "c"}),
                                      Parameter::integer("shared", 1, 4)};
    for (const char* engine : {"a", "b", "c"}) {
        const std::string name = engine;
        parameters.push_back(Parameter::choice(name + ".backend", {"first", "second", "third"})
                                 .when("engine", {name}));
        parameters.push_back(
            Parameter::integer(name + ".seqs", 1, 8).with_default(4).when("engine", {name}));
        parameters.push_back(Parameter::boolean(name + ".cache").when("engine", {name}));
    }
    return SearchSpace(parameters);
}

std::string word(const Configuration& configuration, const char* name) {
    const Value* value = configuration.find(name);
    return value == nullptr ? "" : text_of(*value);
}

/// `refused`: whether the engine does not start.
template <class Refused>
std::vector<Trial> trials_where(const Problem& problem, const Refused& refused,
                                std::size_t trials) {
    Bayesian::Options options;
    options.trials = 40;
    return TuningTask::searched(
        problem, Bayesian(options), trials, 1,
        [&](const Configuration& configuration, Rng& noise) -> Outcome {
            if (refused(configuration)) return Failure{FailureKind::unsupported, "refused"};
            return Measurement{{{metric, {1000 * std::exp(0.01 * noise.normal())}}}};
        });
}

bool anything_works(const Configuration& /*all*/) { return true; }

}  // namespace

TEST_CASE("own defaults: every engine comes first with all else at its default") {
    const Problem problem(three_engines(), {metric}, {});
    const auto history = trials_where(
        problem, [](const Configuration&) { return false; }, 4);
    CHECK(history[0].configuration == problem.space.default_configuration());
    CHECK(history[1].configuration == problem.space.completed({{"engine", "b"}}));
    CHECK(history[2].configuration == problem.space.completed({{"engine", "c"}}));
    CHECK(history[1].why == "a level that much depends on, at its own defaults");
    CHECK(history[3].why == "the default with its least-tried settings changed");
}

TEST_CASE(
    "own defaults: an engine that fails is tried once more with another back end, and no more than "
    "that") {
    const Problem problem(three_engines(), {metric}, {});
    const auto history = trials_where(
        problem,
        [](const Configuration& one) {
            return word(one, "engine") == "b" && word(one, "b.backend") == "first";
        },
        5);
    CHECK(word(history[1].configuration, "engine") == "b");
    REQUIRE(history[1].failure() != nullptr);
    CHECK(history[2].configuration ==
          problem.space.completed({{"engine", "b"}, {"b.backend", "second"}}));
    CHECK(history[3].configuration == problem.space.completed({{"engine", "c"}}));

    const auto hopeless = trials_where(
        problem, [](const Configuration& one) { return word(one, "engine") == "b"; }, 12);
    const auto of_b = std::count_if(hopeless.begin(), hopeless.begin() + 6, [](const Trial& trial) {
        return word(trial.configuration, "engine") == "b";
    });
    CHECK(of_b == 2);
}

TEST_CASE("own defaults: a failure with a part changed is not taken for one of the own default") {
    const SearchSpace space = three_engines();
    const auto evidence = [&](const Assignment& changed, bool works) {
        ConfigurationEvidence entry;
        entry.configuration = space.completed(changed);
        entry.works = works;
        return entry;
    };
    const std::vector<ConfigurationEvidence> tried{
        evidence({}, true), evidence({{"engine", "b"}, {"b.backend", "second"}}, false)};
    CHECK(own_default(space, tried, anything_works) == space.completed({{"engine", "b"}}));
    const std::vector<ConfigurationEvidence> works{
        evidence({}, true), evidence({{"engine", "b"}, {"b.backend", "second"}}, true)};
    CHECK(own_default(space, works, anything_works) == space.completed({{"engine", "c"}}));
}

TEST_CASE("own defaults: an engine whose first back end is refused is found to be the best") {
    const Problem problem(three_engines(), {metric}, {});
    Bayesian::Options options;
    options.trials = 40;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        options.seed = seed;
        const auto history = TuningTask::searched(
            problem, Bayesian(options), 40, seed,
            [](const Configuration& one, Rng& noise) -> Outcome {
                if (word(one, "b.backend") == "first")
                    return Failure{FailureKind::unsupported, "this chip has no such back end"};
                const double rate =
                    word(one, "engine") == "b" ? 1300 + 10 * number(one, "b.seqs") : 1000;
                return Measurement{{{metric, {rate * std::exp(0.01 * noise.normal())}}}};
            });
        const auto found =
            std::max_element(history.begin(), history.end(), [](const Trial& a, const Trial& b) {
                const auto rate = [](const Trial& trial) {
                    return trial.measurement() == nullptr
                               ? 0
                               : trial.measurement()->metrics.at(metric).value;
                };
                return rate(a) < rate(b);
            });
        CHECK(word(found->configuration, "engine") == "b");
        CHECK(number(found->configuration, "b.seqs") >= 6);
    }
}

TEST_CASE(
    "own defaults: what is known to fail, and what cannot be, is not asked, and small subtrees are "
    "left to the rest") {
    const SearchSpace space = three_engines();
    CHECK(own_default(space, {}, anything_works) ==
          space.default_configuration());  // not even that was tried
    CHECK(own_default(space, {}, [](const Configuration& one) {
              return word(one, "engine") == "c";
          }) == space.completed({{"engine", "c"}}));
    CHECK_FALSE(own_default(space, {}, [](const Configuration&) { return false; }));
    const SearchSpace without_c(space.parameters(), {require("engine != 'c'", "not installed")});
    const Problem problem(without_c, {metric}, {});
    const auto history = trials_where(
        problem, [](const Configuration&) { return false; }, 6);
    CHECK(none_of(history,
                  [](const Trial& trial) { return word(trial.configuration, "engine") == "c"; }));
    const SearchSpace small({Parameter::choice("method", {"none", "ngram"}),
                             Parameter::integer("guesses", 1, 7).when("method", {"ngram"})});
    CHECK_FALSE(own_default(small, {}, anything_works));
}
