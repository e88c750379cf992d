// SPDX-License-Identifier: Apache-2.0
// What a study does for a strategy and an evaluator of somebody else: it refuses what cannot be
// measured, passes on its seed and budget, and measures nothing again where that tells nothing new.
#include "support/test.hpp"

#include "servetune/bayesian.hpp"
#include "servetune/error.hpp"
#include "servetune/quasi_random.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/study.hpp"

#include <functional>
#include <optional>
#include <set>
#include <type_traits>

using namespace servetune;
using namespace servetune::test;

// A study has a problem of its own, which a temporary may give; a set of a temporary space would
// dangle.
static_assert(std::is_constructible_v<Study, Problem, const Random&, MemoryJournal&>);
static_assert(!std::is_constructible_v<Study, const Problem&, Random, MemoryJournal&>);
static_assert(
    std::is_constructible_v<Standings, std::span<const Trial>, Objective, Decision, Configuration>);
static_assert(std::is_constructible_v<Standings, const std::vector<Trial>&, Objective, Decision,
                                      Configuration>);
static_assert(!std::is_constructible_v<Standings, std::vector<Trial>, Objective, Decision,
                                       Configuration>);  // points into it

namespace {

class WildProposals : public Strategy {
public:
    explicit WildProposals(Configuration proposed) : proposed_(std::move(proposed)) {}
    [[nodiscard]] std::string name() const override { return "proposing"; }
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial>, Rng&) const override {
        seed = problem.seed;
        trials = problem.trials;
        return Proposal{proposed_, "so"};
    }
    mutable std::uint64_t seed = 0;
    mutable std::optional<std::size_t> trials{};

private:
    Configuration proposed_;
};

SearchSpace own_space() {
    return SearchSpace({Parameter::integer("x", 1, 64), Parameter::choice("c", {"a", "b", "z"})},
                       {Forbid{{{"x", {std::int64_t{7}}}, {"c", {"z"}}}, "they clash"}});
}

Measurement own_rate(const Configuration& configuration) {
    return Measurement{{{"rate", {configuration.number("x") + 3}}}};
}

std::vector<std::string> asked_with_seed(const Strategy& strategy, std::uint64_t seed,
                                         std::size_t trials) {
    MemoryJournal journal;
    std::vector<Parameter> parameters{Parameter::integer(
        "x", 1, 64)};  // and flags that are equals, so that much is left to chance
    for (const char* name : {"a", "b", "c", "d", "e", "f"})
        parameters.push_back(Parameter::boolean(name));
    Study study(Problem(SearchSpace(std::move(parameters)), Objective("rate"), Decision{}),
                strategy, journal, {.seed = seed});
    std::vector<std::string> result;
    while (const auto trial = study.ask({.trials = trials})) {
        result.push_back(trial->configuration.text());
        study.tell(trial->id, own_rate(trial->configuration));
    }
    return result;
}

class SameAnswers : public Evaluator {
public:
    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        again = again || context.again;
        return own_rate(configuration);
    }
    [[nodiscard]] bool replicates_inform() const override { return false; }
    bool again = false;
};

}  // namespace

TEST_CASE("own strategy: a proposal that is not feasible is refused and not recorded") {
    const Problem problem(own_space(), Objective("rate"), Decision{});
    for (const Configuration& wild :
         {Configuration({{"x", std::int64_t{999}}, {"c", "a"}}),
          Configuration({{"x", 9.0}, {"c", "a"}}), Configuration({{"x", std::int64_t{9}}}),
          Configuration({{"x", std::int64_t{7}}, {"c", "z"}}),
          Configuration({{"x", std::int64_t{9}}, {"c", "a"}, {"y", true}})}) {
        INFO(wild.text());
        const WildProposals strategy(wild);
        MemoryJournal journal;
        Study study(problem, strategy, journal);
        study.tell(study.ask()->id, own_rate(problem.space.default_configuration()));
        const std::string refused = message_of<SpaceError>([&] { (void)study.ask(); });
        CHECK(refused.starts_with("strategy 'proposing' proposed " + wild.text() + ": "));
        CHECK(journal.trials().size() == 1);
        SameAnswers evaluator;
        const Summary summary = study.run(evaluator);
        CHECK(summary.reason == StopReason::error);
        CHECK(summary.message == refused);
        CHECK(journal.trials().size() == 1);
    }
}

TEST_CASE("own strategy: the study's seed and the budget of the ask reach it") {
    const Problem problem(own_space(), Objective("rate"), Decision{});
    const WildProposals strategy(problem.space.completed({{"x", std::int64_t{9}}}));
    MemoryJournal journal;
    Study study(problem, strategy, journal, {.seed = 11});
    study.tell(study.ask()->id, own_rate(problem.space.default_configuration()));
    study.tell(study.ask()->id, own_rate(problem.space.completed({{"x", std::int64_t{9}}})));
    CHECK(strategy.seed == 11);
    CHECK_FALSE(strategy.trials.has_value());
    REQUIRE(study.ask({.trials = 40}));
    CHECK(strategy.trials == 40U);
    CHECK(problem.seed == 0);
}

TEST_CASE(
    "own strategy: two seeds of a study are two studies, without another word to the strategy") {
    const std::vector<std::function<std::unique_ptr<Strategy>()>> strategies{
        [] { return std::make_unique<Bayesian>(); }, [] { return std::make_unique<QuasiRandom>(); },
        [] { return std::make_unique<Random>(); }};
    for (const auto& made : strategies) {
        INFO(made()->name());
        std::set<std::vector<std::string>> different;
        for (const std::uint64_t seed : {1U, 2U, 3U, 4U})
            different.insert(asked_with_seed(*made(), seed, 10));
        CHECK(different.size() >= 3);
        CHECK(asked_with_seed(*made(), 5, 10) == asked_with_seed(*made(), 5, 10));
    }
    // As if both were said twice; and one object serves several studies.
    BayesianOptions twice;
    twice.seed = 5;
    twice.trials = 16;
    const Bayesian once;
    (void)asked_with_seed(once, 6, 10);
    CHECK(asked_with_seed(once, 5, 16) == asked_with_seed(Bayesian(twice), 5, 16));
}

TEST_CASE("own evaluator: where measuring again tells nothing new, nothing is") {
    const Random strategy;
    MemoryJournal journal;
    Study study(Problem(own_space(), Objective("rate"), Decision{}), strategy, journal);
    SameAnswers evaluator;
    const Summary summary = study.run(evaluator, {.trials = 20});
    CHECK(summary.reason == StopReason::trials_spent);
    CHECK_FALSE(evaluator.again);
    std::set<std::string> asked;
    for (const Trial& trial : study.trials()) asked.insert(trial.configuration.text());
    CHECK(asked.size() == 20);
    CHECK(summary.recommendation.conclusion == Conclusion::recommended);
}
