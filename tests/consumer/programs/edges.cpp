// SPDX-License-Identifier: Apache-2.0
// The edges of a study: figures of any sign, names that are wrong, seeds, journals that fail, many
// open trials.
#include "expect.hpp"

#include <servetune/bayesian.hpp>
#include <servetune/servetune.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace servetune;

namespace {

SearchSpace space() {
    return SearchSpace({Parameter::integer("x", 1, 64), Parameter::choice("c", {"a", "b", "z"})});
}

Outcome rate(double value, const char* name = "rate") { return Measurement{{{name, {value}}}}; }

/// What is best of 25 trials of `value(x)`.
template <class Value>
Recommendation tuned(Direction direction, const Value& value) {
    Problem problem(space(), Objective("rate", direction), Decision{});
    problem.replicates_inform = false;
    const Bayesian strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    while (const auto trial = study.ask({.trials = 25}))
        study.tell(trial->id, rate(value(trial->configuration.number("x"))));
    return study.recommendation();
}

void figures_of_any_sign() {
    const auto above = [](const Recommendation& result, double least) {
        return result.conclusion == Conclusion::recommended &&
               result.recommended.number("x") >= least;
    };
    expect(above(tuned(Direction::maximize, [](double x) { return x - 20; }), 55),
           "values through zero");
    expect(above(tuned(Direction::maximize, [](double x) { return x - 500; }), 55),
           "values below zero");
    expect(above(tuned(Direction::minimize, [](double x) { return -x; }), 55),
           "values below zero, the least wins");
    expect(
        tuned(Direction::maximize, [](double) { return 5; }).conclusion == Conclusion::keep_default,
        "the same everywhere");
    expect(
        tuned(Direction::maximize, [](double) { return 0; }).conclusion == Conclusion::keep_default,
        "zero everywhere");
}

void names_that_are_wrong() {
    const Problem problem(
        space(), Objective("rate", Direction::maximize, {Limit::parse("p99 <= 3")}), Decision{});
    const Bayesian strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    const auto first = study.ask();
    expect(throws<UsageError>([&] { study.tell(first->id, rate(5, "raet")); }, "'rate' is missing",
                              "raet"),
           "a metric misspelled");
    expect(throws<UsageError>([&] { study.tell(first->id, rate(5)); }, "p99 <= 3"),
           "a limit's metric left out");
    expect(!study.trials().front().told(), "a refused result is recorded");
    study.tell(first->id,
               Measurement{{{"rate", {5}}, {"p99", {std::numeric_limits<double>::infinity()}}}});
    expect(study.trials().front().failure() != nullptr &&
               study.trials().front().failure()->kind == FailureKind::invalid_result,
           "an infinite metric");
    expect(throws<SpaceError>(
               [&] {
                   study.propose(Configuration({{"x", 999}, {"c", "a"}}), "mine");
               },
               "x"),
           "outside of the domain");
    expect(throws<SpaceError>(
               [&] {
                   study.propose(Configuration({{"x", 9}}), "mine");
               },
               "c"),
           "a parameter left out");
    expect(throws<SpaceError>(
               [&] {
                   study.propose(Configuration({{"x", 9.0}, {"c", "a"}}), "mine");
               },
               "x"),
           "a real for an integer");
    expect(throws<SpaceError>(
               [&] {
                   (void)problem.space.completed({{"y", 9}});
               },
               "y"),
           "an unknown name");
    expect(throws<UsageError>([&] { study.start(100000); }, "100000"), "an unknown trial");
    expect(throws<SpaceError>(
               [] {
                   SearchSpace(space().parameters(), {Forbid{{{"c", {"q"}}}, ""}});
               },
               "c=q"),
           "a value in a rule");
}

std::vector<std::string> asks(std::uint64_t seed) {
    const Bayesian strategy;
    MemoryJournal journal;
    std::vector<Parameter> parameters{Parameter::integer("x", 1, 64)};
    for (const char* flag : {"a", "b", "c", "d", "e", "f"})
        parameters.push_back(Parameter::boolean(flag));  // equals: a seed decides
    Study study(Problem(SearchSpace(std::move(parameters)), Objective("rate"), Decision{}),
                strategy, journal, {.seed = seed});
    std::vector<std::string> result;
    while (const auto trial = study.ask({.trials = 12})) {
        result.push_back(trial->configuration.text());
        study.tell(trial->id, rate(trial->configuration.number("x") + 3));
    }
    return result;
}

void many_open_trials() {
    const Problem problem(space(), Objective("rate"), Decision{});
    const Bayesian strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    std::set<std::string> different;
    for (int i = 0; i < 30; ++i)
        if (const auto trial = study.ask()) different.insert(trial->configuration.text());
    expect(different.size() == 30,
           text("30 asks without a tell are 30 configurations, not ", different.size()));
}

struct FullDisk : MemoryJournal {
    int tells = 0;
    void told(std::uint64_t id, const SharedOutcome& outcome, double at) override {
        if (++tells == 3) throw IoError("disk full");
        MemoryJournal::told(id, outcome, at);
    }
};

void a_journal_that_fails() {
    const Problem problem(space(), Objective("rate"), Decision{});
    const Random strategy;
    FullDisk journal;
    Study study(problem, strategy, journal);
    for (int i = 0; i < 2; ++i) study.tell(study.ask()->id, rate(4));
    const auto third = study.ask();
    expect(throws<IoError>([&] { study.tell(third->id, rate(4)); }, "disk full"), "a full disk");
    study.tell(third->id, rate(4));
    expect(study.told_in_search() == 3 && journal.trials()[2].told(),
           "what was not recorded can be told again");
}

}  // namespace

int main() {
    figures_of_any_sign();
    names_that_are_wrong();
    expect(asks(5) == asks(5), "the same seed, the same study");
    expect(asks(5) != asks(6), "another seed, another study");
    many_open_trials();
    a_journal_that_fails();
    return wrong;
}
