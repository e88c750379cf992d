// SPDX-License-Identifier: Apache-2.0
// After the search: what looks best and the default in turn, until it is settled or the budget is
// spent.
#include "study/confirmation.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/search_space.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

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
        const auto first = find_if(history, confirms);
        // A large gain needs one round, and half of the reserve is kept for more.
        CHECK(first - history.begin() ==
              std::ptrdiff_t(search_trials(problem, trials_to_confirm, effect > 0 ? 1 : 12)));
        CHECK(std::all_of(first, history.end(), confirms));
        CHECK(history.end() - first >= (effect > 0 ? 2 : 6));
        CHECK(std::count_if(first, first + 2, [&](const Trial& trial) {
                  return trial.configuration == problem.space.default_configuration();
              }) == 1);
        const Recommendation result = recommend(problem, history);
        CHECK((result.conclusion == Conclusion::recommended) == (effect > 0));
        if (effect <= 0) continue;
        CHECK(result.gain.low < std::expm1(0.6));
        CHECK(result.gain.high > std::expm1(0.6));
        CHECK(result.gain.has_interval());
    }
}

TEST_CASE(
    "confirmation: rounds are looked at after three, six and twelve, and begin anew after a "
    "search") {
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
    Rng draws(1);
    const auto measure = [&](std::size_t most, double gain) {
        const Answer answer = Confirmation(problem, history, most).next();
        const auto* next = std::get_if<Proposal>(&answer);
        if (next == nullptr) return false;
        // Noise that a gain of 2 % is not to be told from.
        const double noise = std::exp(0.05 * draws.normal());
        told(next->configuration,
             (next->configuration == mode(0) ? 1000 : 1000 * (1 + gain)) * noise, Purpose::confirm);
        return true;
    };
    while (measure(1000, 0.02)) {
    }
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

TEST_CASE(
    "confirmation: the order within rounds is drawn, and none has the same one before the other as "
    "a load that comes back") {
    std::set<std::vector<bool>> orders;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Problem problem(SearchSpace({Parameter::integer("mode", 0, 3)}), {metric}, {});
        problem.seed = seed;
        std::vector<Trial> history;
        Rng noise(seed);
        const auto told = [&](const Configuration& one, Purpose purpose) {
            Trial trial{history.size(), one};
            trial.purpose = purpose;
            trial.outcome =
                Measurement{{{metric, {1000 + 3 * number(one, "mode") + 20 * noise.normal()}}}};
            history.push_back(std::move(trial));
        };
        for (std::int64_t mode = 0; mode < 4; ++mode)
            told(problem.space.completed({{"mode", mode}}), Purpose::search);
        std::vector<bool> first;  // whether the default came first, by round
        for (int trial = 0; trial < 6; ++trial) {
            const auto next = [&] {
                return std::get<Proposal>(Confirmation(problem, history, 1000).next());
            };
            CHECK(next().configuration == next().configuration);
            told(next().configuration, Purpose::confirm);
            if (trial % 2 == 0)
                first.push_back(history.back().configuration ==
                                problem.space.default_configuration());
        }
        // Else a load of period two or four would meet the same one three times.
        CHECK(first.front() != first.back());
        orders.insert(std::move(first));
    }
    CHECK(orders.size() == 4);
}

TEST_CASE(
    "confirmation: a gain far above noise and drift is decided after one round, and an exact one") {
    const auto rounds_until_settled = [](double gain, double noise) {
        const Problem problem(SearchSpace({Parameter::integer("mode", 0, 5)}), {metric}, {});
        std::vector<std::ptrdiff_t> rounds(9);
        for (std::uint64_t seed = 0; seed < rounds.size(); ++seed) {
            const std::vector<Trial> history = TuningTask::studied(
                problem, Exhaustive(), 30, seed, [&](const Configuration& one, Rng& draws) {
                    const double mode = number(one, "mode");
                    return Measurement{{{metric,
                                         {1000 * (mode == 4 ? 1 + gain : 1 - mode / 1000) *
                                          std::exp(noise * draws.normal())}}}};
                });
            const Recommendation result = recommend(problem, history);
            CHECK(result.conclusion == Conclusion::recommended);
            CHECK(number(result.recommended, "mode") == 4);
            rounds[seed] = count_if(history, confirms) / 2;
        }
        sort(rounds);
        return rounds[rounds.size() / 2];
    };
    CHECK(rounds_until_settled(0.78, 0.001) == 1);
    CHECK(rounds_until_settled(0.3, 0.01) == 1);
    CHECK(rounds_until_settled(0.15, 0.01) == 2);
    CHECK(rounds_until_settled(0.02, 0) == 1);
    CHECK(rounds_until_settled(0.03, 0.003) == 3);
}

TEST_CASE("confirmation: what a slow trial alone says in one round is not believed") {
    const Problem problem(SearchSpace({Parameter::integer("mode", 0, 5)}), {metric}, {});
    std::size_t trial = 0;
    const std::vector<Trial> history =
        TuningTask::studied(problem, Exhaustive(), 8, 1, [&](const Configuration& one, Rng& draws) {
            const bool slow = trial++ >= 6 && number(one, "mode") == 0;
            return Measurement{{{metric, {(slow ? 700 : 1000) * std::exp(0.01 * draws.normal())}}}};
        });
    CHECK(count_if(history, confirms) == 2);
    CHECK(recommend(problem, history).conclusion != Conclusion::recommended);
}

TEST_CASE(
    "confirmation: a part of the budget is kept for it, as the gain needs, and a small one is "
    "searched with first") {
    CHECK(confirmation_reserve(7) == 0);
    CHECK(confirmation_reserve(8) == 2);
    CHECK(confirmation_reserve(12) == 6);
    CHECK(confirmation_reserve(20) == 6);
    CHECK(confirmation_reserve(30) == 8);
    CHECK(confirmation_reserve(40) == 12);
    CHECK(confirmation_reserve(8, 2) == 2);
    CHECK(confirmation_reserve(12, 1) == 2);
    CHECK(confirmation_reserve(40, 1) == 6);
    for (std::size_t trials = 8; trials < 500; ++trials) {
        CHECK(confirmation_reserve(trials) <= confirmation_reserve(trials + 1));
        CHECK(confirmation_reserve(trials) + 6 <= trials);
        CHECK(confirmation_reserve(trials) <= 12);
        CHECK(confirmation_reserve(trials, 1) <= confirmation_reserve(trials));
    }
}

TEST_CASE("confirmation: twelve trials search at least eight configurations where one gains 30 %") {
    const Problem problem(SearchSpace({Parameter::integer("mode", 0, 63)}), {metric}, {});
    std::size_t found = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const std::vector<Trial> history = TuningTask::studied(
            problem, Exhaustive(), 12, seed, [](const Configuration& one, Rng& draws) {
                const double gain = number(one, "mode") == 4 ? 1.3 : 1;
                return Measurement{{{metric, {1000 * gain * std::exp(0.01 * draws.normal())}}}};
            });
        CHECK(count_if(history, confirms) <= 4);
        found += number(recommend(problem, history).recommended, "mode") == 4 ? 1 : 0;
    }
    CHECK(found >= 19);
}

TEST_CASE("confirmation: eight trials of an exact function try six configurations") {
    const Problem problem(SearchSpace({Parameter::integer("n", 1, 64)}), {metric}, {});
    const std::vector<Trial> history = TuningTask::studied(
        problem, Bayesian({.trials = 8}), 8, 0, [](const Configuration& one, Rng&) {
            return Measurement{{{metric, {number(one, "n")}}}};
        });
    std::set<Configuration> tried;
    for (const Trial& trial : history) tried.insert(trial.configuration);
    CHECK(tried.size() == 6);
    CHECK(number(recommend(problem, history).recommended, "n") > 31);
}

TEST_CASE("confirmation: a count that comes again for all its noise proves nothing") {
    const Problem problem(SearchSpace({Parameter::integer("mode", 0, 63)}), {metric}, {});
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed)
        for (const std::size_t trials : {8, 12}) {
            const std::vector<Trial> history = TuningTask::studied(
                problem, Exhaustive(), trials, seed, [](const Configuration&, Rng& draws) {
                    const double figure = std::round(10.4 * std::exp(0.03 * draws.normal()));
                    return Measurement{{{metric, {figure}}}};
                });
            wrong += recommend(problem, history).conclusion == Conclusion::recommended ? 1 : 0;
        }
    CHECK(wrong <= 4);  // of 200
}

TEST_CASE("confirmation: what was not measured in the search is not proven by one round") {
    const Problem problem(SearchSpace({Parameter::integer("mode", 0, 7)}), {metric}, {});
    std::vector<Trial> history;
    for (const int mode : {0, 1, 2, 5, 0}) {
        Trial trial{history.size(), problem.space.completed({{"mode", std::int64_t{mode}}})};
        trial.purpose = history.size() < 3 ? Purpose::search : Purpose::confirm;
        trial.outcome = Measurement{{{metric, {1000 + 10.0 * mode}}}};
        history.push_back(std::move(trial));
    }
    CHECK(recommend(problem, history).conclusion == Conclusion::inconclusive);
}

TEST_CASE(
    "confirmation: a configuration that comes again is measured with a seed of its own, the same "
    "for all") {
    // A load test draws its prompts by it: an engine that keeps answers finds none again.
    const Problem problem(SearchSpace({Parameter::integer("mode", 0, 3)}), {metric}, {});
    const std::vector<Trial> history = TuningTask::studied(
        problem, Exhaustive(), 10, 1, [&](const Configuration& one, Rng& draws) {
            return Measurement{{{metric, {1000 + 50 * number(one, "mode") + draws.normal()}}}};
        });
    std::map<Configuration, std::vector<std::uint64_t>> seeds;
    for (const Trial& trial : history) seeds[trial.configuration].push_back(trial.seed);
    const auto& of_default = seeds.at(problem.space.default_configuration());
    CHECK(of_default.size() > 1);
    for (const auto& [one, drawn] : seeds) {
        CHECK(std::set<std::uint64_t>(drawn.begin(), drawn.end()).size() == drawn.size());
        for (std::size_t i = 0; i < std::min(drawn.size(), of_default.size()); ++i)
            CHECK(drawn[i] == of_default[i]);
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
        if (none_of(history, [&](const Trial& trial) { return trial.configuration == one; }))
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
