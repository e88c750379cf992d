// SPDX-License-Identifier: Apache-2.0
// After the search: what looks best and the default in turn, until it is settled or the budget is
// spent.
#include "study/confirmation.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/search_space.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr std::size_t trials_to_confirm = 40;

SearchSpace space_to_confirm() {
    return SearchSpace({Parameter::choice("backend", {"plain", "fast", "other"}),
                        Parameter::choice("size", {8, 16, 32, 64, 128}, true),
                        Parameter::choice("mode", {"a", "b", "c"})});
}

}  // namespace

TEST_CASE(
    "confirmation: once the search is over, what looks best and the default are measured in turn "
    "until it is settled") {
    const Problem problem(space_to_confirm(), {metric}, {});
    for (const double effect : {0.2, 0.0}) {
        Bayesian::Options options;
        options.trials = trials_to_confirm;
        const std::vector<Trial> history = TuningTask::studied(
            problem, Bayesian(options), trials_to_confirm, 1,
            [&](const Configuration& one, Rng& draws) -> Outcome {
                const int right = (text_of(*one.find("backend")) == "fast") +
                                  (text_of(*one.find("mode")) == "b") +
                                  (text_of(*one.find("size")) == "64");
                return Measurement{
                    {{metric, {1000 * std::exp(effect * right + 0.003 * draws.normal())}}}};
            });
        const auto first = std::find_if(history.begin(), history.end(), confirms);
        CHECK(first - history.begin() ==
              static_cast<std::ptrdiff_t>(search_trials(problem, trials_to_confirm)));
        CHECK(std::all_of(first, history.end(), confirms));
        CHECK(history.end() - first >= 6);
        CHECK(first->configuration == problem.space.default_configuration());
        const Recommendation result = recommend(problem, history);
        CHECK((result.conclusion == Conclusion::recommended) == (effect > 0));
        if (effect <= 0) continue;
        CHECK(result.gain.low < std::expm1(0.6));
        CHECK(result.gain.high > std::expm1(0.6));
        CHECK(result.gain.has_interval());
    }
}

TEST_CASE(
    "confirmation: rounds go forwards and backwards, are looked at after three, six and twelve, "
    "and begin anew after a search") {
    const Problem problem(SearchSpace({Parameter::integer("mode", 0, 4)}), {metric}, {});
    std::vector<Trial> history;
    const auto told = [&](const Configuration& configuration, double rate, Purpose purpose) {
        Trial trial{history.size(), configuration};
        trial.purpose = purpose;
        trial.outcome = Measurement{{{metric, {rate}}}};
        history.push_back(std::move(trial));
    };
    const auto mode = [&](std::int64_t value) {
        return problem.space.completed({{"mode", value}});
    };
    for (const auto& [one, rate] :
         {std::pair(0, 1000.0), std::pair(1, 940.0), std::pair(2, 950.0), std::pair(3, 1003.0)})
        told(mode(one), rate, Purpose::search);
    const auto measure = [&](std::size_t most, double gain) {
        const Answer answer = Confirmation(problem, history, most).next();
        const auto* next = std::get_if<Proposal>(&answer);
        if (next == nullptr) return false;
        // Noise that is not to be told from a gain of 2 %.
        const double noise = history.size() % 3 == 0 ? 1.03 : 0.98;
        told(next->configuration,
             (next->configuration == mode(0) ? 1000 : 1000 * (1 + gain)) * noise, Purpose::confirm);
        return true;
    };
    while (measure(1000, 0.02)) {
    }
    const auto asked = [&](std::size_t i) {
        return static_cast<int>(number(history[4 + i].configuration, "mode"));
    };
    CHECK((asked(0) == 0 && asked(1) == 3 && asked(2) == 3 && asked(3) == 0 && asked(4) == 0 &&
           asked(5) == 3));
    CHECK(history.size() == 4 + 24);  // never settled, and not more than twelve
    std::vector<const Trial*> all;
    for (const Trial& trial : history) all.push_back(&trial);
    CHECK(confirmation_rounds(all).size() == 12);

    told(mode(4), 1500, Purpose::search);  // a larger budget found something
    REQUIRE(measure(1000, 0.4));
    CHECK(history.back().configuration == mode(0));
    REQUIRE(measure(1000, 0.4));
    CHECK(history.back().configuration == mode(4));
    while (measure(1000, 0.4)) {
    }
    CHECK(recommend(problem, history).recommended == mode(4));
}

TEST_CASE(
    "confirmation: a smaller command that seems to lose nothing is measured as often as the best") {
    const Problem problem(
        SearchSpace({Parameter::integer("a", 0, 1), Parameter::integer("b", 0, 1)}), {metric}, {});
    const Exhaustive strategy;
    std::size_t smaller = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const std::vector<Trial> history = TuningTask::studied(
            problem, strategy, 30, seed, [](const Configuration& one, Rng& draws) {
                return Measurement{
                    {{metric,
                      {1000 * (1 + 0.1 * number(one, "a")) * std::exp(0.005 * draws.normal())}}}};
            });
        const Recommendation result = recommend(problem, history);
        REQUIRE(result.conclusion == Conclusion::recommended);
        CHECK(number(result.recommended, "a") == 1);
        smaller += number(result.recommended, "b") == 0 ? 1 : 0;
    }
    CHECK(smaller >= 8);
}

TEST_CASE("confirmation: a part of the budget is kept for it, and none of one that is too small") {
    CHECK(confirmation_reserve(7) == 0);
    CHECK(confirmation_reserve(8) == 6);
    CHECK(confirmation_reserve(20) == 6);
    CHECK(confirmation_reserve(23) == 9);
    CHECK(confirmation_reserve(30) == 9);
    CHECK(confirmation_reserve(40) == 12);
    for (std::size_t trials = 8; trials < 500; ++trials) {
        CHECK(confirmation_reserve(trials) <= confirmation_reserve(trials + 1));
        CHECK(confirmation_reserve(trials) + 2 <= trials);
        CHECK(confirmation_reserve(trials) <= 12);
    }
}

TEST_CASE(
    "confirmation: what lost a race to a configuration that is out later is measured in full") {
    const Problem problem(space_to_confirm(), Objective({{metric}}, {{"delay", false, 1}}), {});
    Bayesian::Options options;
    options.trials = trials_to_confirm;
    const Bayesian strategy(options);
    std::vector<Trial> history;
    Rng noise(1);
    const auto told = [&](const Configuration& configuration, double rate, double delay) -> Trial& {
        Trial trial{history.size(), configuration};
        trial.outcome = Measurement{{{metric, {rate}}, {"delay", {delay}}}};
        history.push_back(std::move(trial));
        return history.back();
    };
    while (history.size() < 14) {
        Answer answer = strategy.ask(problem, history, noise);
        told(std::get<Proposal>(answer).configuration, 5000 * std::exp(0.003 * noise.normal()),
             0.5);
    }
    Configuration best, lost;
    for (const Configuration& one : neighbours(problem.space, history.back().configuration))
        if (std::none_of(history.begin(), history.end(),
                         [&](const Trial& trial) { return trial.configuration == one; }))
            (best == Configuration{} ? best : lost) = one;
    told(best, 10000, 0.9);
    Trial& ended = told(lost, 7500, 0.5);
    ended.outcome = Measurement{{{metric, {7500, 1000}}, {std::string(trial_had_to_reach), {8333}}},
                                {Verdict::suspect, {{"given_up"}}}};
    const auto next = [&] { return std::get<Proposal>(strategy.ask(problem, history, noise)); };
    CHECK_FALSE(next().why.starts_with("again, in full"));
    told(best, 10000, 1.2);  // it breaks the limit now
    CHECK(next().configuration == lost);
    CHECK(next().why.starts_with("again, in full"));
    told(lost, 7400, 0.5);
    CHECK_FALSE(next().why.starts_with("again, in full"));
}
