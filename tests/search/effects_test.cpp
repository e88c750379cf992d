// SPDX-License-Identifier: Apache-2.0
// What the parameters do over a whole space: against functions whose effects are known.
#include "servetune/explanation.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <utility>

using namespace servetune;
using namespace servetune::test;

namespace {

SearchSpace known_space() {
    return SearchSpace(
        {Parameter::choice("backend", {"a", "b", "c", "d"}),
         Parameter::integer("size", 1, 16, Scale::log2), Parameter::integer("depth", 1, 4),
         Parameter::choice("cache", {"off", "on"}), Parameter::choice("mode", {"x", "y"})});
}

/// ln of the objective: backend, size and depth act alone; cache helps where the size is large and
/// costs where it is small. `mode` does nothing.
double logarithm(const Configuration& configuration) {
    const std::string backend = text_of(*configuration.find("backend"));
    const double size = std::log2(number(configuration, "size")) - 2;
    const bool cache = *configuration.find("cache") == Value("on");
    return (backend == "a"   ? 0
            : backend == "b" ? 0.15
            : backend == "c" ? -0.1
                             : -0.05) +
           0.05 * size + 0.02 * number(configuration, "depth") + (cache ? 0.08 : -0.08) * size;
}

/// The average of ln(objective) over the space with a parameter at a level, less the average over
/// all.
double true_effect(const Problem& problem, const std::string& parameter, const Value& level) {
    double all = 0, with = 0, count = 0, count_with = 0;
    problem.feasible.for_each([&](const Configuration& configuration) {
        const double value = logarithm(configuration);
        all += value;
        ++count;
        if (*configuration.find(parameter) == level) with += value, ++count_with;
        return true;
    });
    return std::expm1(with / count_with - all / count);
}

TuningTask::Answering noisy_logarithm(double cv) {
    return [cv](const Configuration& configuration, Rng& rng) -> Outcome {
        return Measurement{
            {{metric, {1000 * std::exp(logarithm(configuration) + cv * rng.normal())}}}};
    };
}

}  // namespace

TEST_CASE(
    "effects: known main effects lie within their intervals, and the known interaction comes "
    "first") {
    const Problem problem(known_space(), {metric}, {});
    const Bayesian bayesian;
    std::size_t within = 0, all = 0, first = 0, known = 0, runs = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed, ++runs) {
        const auto history =
            TuningTask::searched(problem, Random(), 60, seed, noisy_logarithm(0.02));
        const Effects effects = Explanation(problem, history, bayesian).effects();
        REQUIRE(effects.floor.enough());
        REQUIRE(effects.learned());
        CHECK(effects.main.size() == 4 + 5 + 4 + 2 + 2);
        for (const MainEffect& effect : effects.main) {
            CHECK(effect.gain.low <= effect.gain.value);
            CHECK(effect.gain.value <= effect.gain.high);
            const double truth = true_effect(problem, effect.parameter, effect.level);
            within += truth >= effect.gain.low && truth <= effect.gain.high ? 1 : 0;
            known += std::abs(truth) > 0.05 && effect.gain.known() ? 1 : 0;
            ++all;
        }
        REQUIRE(!effects.pairs.empty());
        const PairEffect& strongest = effects.pairs.front();
        first += strongest.parameters == std::array<std::string, 2>{"size", "cache"} &&
                         strongest.gain.known()
                     ? 1
                     : 0;
        // Of the variance of (0.05 +- 0.08) size and the rest; 0.0128 of 0.0257 in ln units.
        CHECK(strongest.share == Approx(0.5).margin(0.2));
        CHECK(effects.pairs.size() <= 3);
        for (std::size_t i = 1; i < effects.pairs.size(); ++i) CHECK(effects.pairs[i].share < 0.1);
    }
    INFO(within << " of " << all << " within, " << known << " known");
    CHECK(double(within) >= 0.88 * double(all));  // 95 % were the model the truth
    CHECK(first == runs);
    CHECK(known >= 4 * runs);  // of the five that are beyond 5 %
}

TEST_CASE(
    "effects: nothing is said of too few configurations, nor where nothing is to be learned") {
    const Problem problem(known_space(), {metric}, {});
    const Bayesian bayesian;
    const auto six = TuningTask::searched(problem, Random(), 6, 1, noisy_logarithm(0.02));
    const Effects few = Explanation(problem, six, bayesian).effects();
    CHECK(few.floor.measured == 6);
    CHECK(few.floor.needed() == 7);
    CHECK_FALSE(few.floor.enough());
    CHECK_FALSE(few.learned());
    CHECK(few.main.empty());
    CHECK(few.pairs.empty());
    std::size_t learned = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto history = TuningTask::searched(
            problem, Random(), 25, seed, [](const Configuration&, Rng& rng) -> Outcome {
                return Measurement{{{metric, {1000 * std::exp(0.01 * rng.normal())}}}};
            });
        const Effects nothing = Explanation(problem, history, bayesian).effects();
        REQUIRE(nothing.floor.enough());
        learned += nothing.learned() ? 1 : 0;
        if (!nothing.learned()) CHECK(nothing.pairs.empty());
    }
    CHECK(learned <= 9);  // 5; 3 of 60 would be if the model were the truth
    const std::vector<Trial> none;
    CHECK_FALSE(Explanation(problem, none, bayesian).floor().enough());
}

TEST_CASE(
    "effects: failures, conditions, constraints and reals are borne, in either direction, in "
    "bounded time") {
    std::vector<Parameter> parameters{
        Parameter::choice("backend", {"fa3", "flashinfer", "triton", "torch"}),
        Parameter::integer("seqs", 32, 1024, Scale::log2).with_default(256),
        Parameter::integer("tokens", 1024, 65536, Scale::log2).with_default(8192),
        Parameter::choice("method", {"none", "ngram"}),
        Parameter::integer("guesses", 1, 7).when("method", {"ngram"}),
        Parameter::integer("blocks", 1, 64),
        Parameter::real("share", 0.5, 0.95).with_default(0.9)};
    const Problem problem(SearchSpace(parameters, {require("tokens >= 32 * seqs", "")}),
                          {"latency_seconds", Direction::minimize}, {});
    const auto history = TuningTask::searched(
        problem, Random(), 60, 1, [](const Configuration& configuration, Rng& rng) -> Outcome {
            if (TuningTask::fails(configuration))
                return Failure{FailureKind::out_of_memory, "no room"};
            return Measurement{{{"latency_seconds",
                                 {std::exp(-number(configuration, "share") + 0.01 * rng.normal()) /
                                  TuningTask().truth(configuration)}}}};
        });
    const Bayesian bayesian;
    const auto begin = std::chrono::steady_clock::now();
    const Effects effects = Explanation(problem, history, bayesian).effects();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::cout << "effects of 60 trials in a space of " << problem.feasible.size() << ": " << seconds
              << " s\n";
    CHECK(seconds < 20);  // two on an idle machine
    CHECK(effects.learned());
    std::set<std::string> seen;
    for (const MainEffect& effect : effects.main) {
        seen.insert(effect.parameter);
        CHECK(std::isfinite(effect.gain.value));
        CHECK(effect.gain.low <= effect.gain.high);
        if (effect.parameter == "backend" && effect.level == Value("torch"))
            CHECK(effect.gain.high < 0);  // slower is worse
    }
    CHECK(seen.size() == parameters.size());
    // The same again: nothing is drawn from a clock.
    const Effects again = Explanation(problem, history, bayesian).effects();
    REQUIRE(again.main.size() == effects.main.size());
    for (std::size_t i = 0; i < effects.main.size(); ++i)
        CHECK(again.main[i].gain.value == effects.main[i].gain.value);
}

namespace {

/// Every configuration once, in the space's order but the default first, as a table answers.
std::vector<Trial> all_measured(const Problem& problem,
                                const std::function<Outcome(const Configuration&)>& answer) {
    std::vector<Configuration> all{problem.space.default_configuration()};
    problem.feasible.for_each([&](const Configuration& one) {
        if (one != all.front()) all.push_back(one);
        return true;
    });
    std::vector<Trial> result;
    for (const Configuration& one : all)
        result.push_back({result.size(), one, "", 0, "", answer(one)});
    return result;
}

}  // namespace

TEST_CASE("effects: a level that is far worse than the rest is told as bad as it was measured") {
    // Tokens a second of nine checkpoints: one is 15 times slower than the median, beyond what the
    // search cares to tell apart.
    const std::map<std::string, double> printed{
        {"none", 1438.24},       {"fp8", 5052.48},        {"fp4", 2921.73},
        {"gptq-int4", 1796.55},  {"gptq-int8", 1381.78},  {"awq", 1755.51},
        {"int4-w4a16", 1736.36}, {"int8-w8a16", 1417.54}, {"gguf", 134.16}};
    const Problem problem(SearchSpace({Parameter::choice(
                              "quantization", {"none", "fp8", "fp4", "gptq-int4", "gptq-int8",
                                               "awq", "int4-w4a16", "int8-w8a16", "gguf"})}),
                          {metric}, {});
    const auto history = all_measured(problem, [&](const Configuration& one) -> Outcome {
        return Measurement{{{metric, {printed.at(text_of(*one.find("quantization")))}}}};
    });
    const Bayesian bayesian;
    double mean = 0;
    for (const auto& [level, value] : printed) mean += std::log(value) / double(printed.size());
    const Effects effects = Explanation(problem, history, bayesian).effects();
    CHECK(effects.main.size() == printed.size());  // none is left out
    CHECK(effects.left_out(problem.space.at("quantization")) == 0);
    for (const MainEffect& effect : effects.main) {
        const double truth = std::log(printed.at(text_of(effect.level))) - mean;
        CHECK(std::log1p(effect.gain.value) == Approx(truth).margin(0.05));
        CHECK(std::log1p(effect.gain.low) <= truth);
        CHECK(truth <= std::log1p(effect.gain.high));
    }
}

TEST_CASE(
    "effects: a bad level does not hide what the other parameters do, nor theirs what it does") {
    const Problem problem(
        SearchSpace({Parameter::choice("engine", {"a", "b"}),
                     Parameter::choice("cache", {"off", "on"}),
                     Parameter::choice("mode", {"x", "y"}), Parameter::integer("depth", 1, 4)}),
        {metric}, {});
    const auto log_truth = [](const Configuration& one) {
        return (*one.find("engine") == Value("b") ? -1.5 : 0) +
               (*one.find("cache") == Value("on") ? 0.1 : 0) + 0.03 * number(one, "depth");
    };
    const Bayesian bayesian;
    std::size_t within = 0, all = 0;
    for (const Direction direction : {Direction::maximize, Direction::minimize}) {
        const double sign = direction == Direction::maximize ? 1 : -1;
        const Problem turned(problem.space, {metric, direction}, {});
        const auto history = TuningTask::searched(
            turned, Random(), 24, 3, [&](const Configuration& one, Rng& rng) -> Outcome {
                return Measurement{
                    {{metric, {1000 * std::exp(sign * log_truth(one) + 0.01 * rng.normal())}}}};
            });
        const Effects effects = Explanation(turned, history, bayesian).effects();
        for (const MainEffect& effect : effects.main) {
            // Against the average of the parameter's levels.
            const double level = number_of(effect.level).value_or(0);
            const double log_gain =
                effect.parameter == "engine"  ? (effect.level == Value("b") ? -0.75 : 0.75)
                : effect.parameter == "cache" ? (effect.level == Value("on") ? 0.05 : -0.05)
                : effect.parameter == "mode"  ? 0
                                              : 0.03 * (level - 2.5);
            const double truth = std::expm1(log_gain);
            INFO(effect.parameter << " " << text_of(effect.level) << ": " << effect.gain.low << " "
                                  << effect.gain.value << " " << effect.gain.high);
            CHECK(effect.gain.value == Approx(truth).margin(0.03 * (1 + truth)));
            within += truth >= effect.gain.low && truth <= effect.gain.high ? 1 : 0;
            ++all;
            if (effect.parameter == "engine" || effect.parameter == "cache") CHECK(effect.known());
        }
    }
    INFO(within << " of " << all << " within");
    CHECK(4 * within >= 3 * all);
}

TEST_CASE(
    "effects: a level of which every configuration was refused has no gain, and enters no "
    "other's") {
    const Objective objective{metric, Direction::maximize, {{"success_ratio", true, 0.99}}};
    const Problem problem(SearchSpace({Parameter::choice("guess", {"none", "mtp"}),
                                       Parameter::choice("engine", {"a", "b", "c"}),
                                       Parameter::choice("cache", {"off", "on", "big", "huge"})}),
                          objective, {});
    // Half of the requests fail with mtp, which makes the rest look fast; c does not start.
    const auto answer = [](const Configuration& one) -> Outcome {
        if (*one.find("engine") == Value("c"))
            return Failure{FailureKind::out_of_memory, "no room"};
        const bool guesses = *one.find("guess") == Value("mtp");
        return Measurement{
            {{metric,
              {(guesses ? 1500.0 : 1000.0) * (*one.find("engine") == Value("b") ? 0.6 : 1)}},
             {"success_ratio", {guesses ? 0.514 : 1.0}}}};
    };
    const auto history = all_measured(problem, answer);
    const Bayesian bayesian;
    const Effects effects = Explanation(problem, history, bayesian).effects();
    const auto refused = [](const auto& effect) {
        return std::pair(effect.parameter, text_of(effect.level));
    };
    std::map<std::pair<std::string, std::string>, std::string> found;
    for (const MainEffect& effect : effects.main) {
        if (!effect.refused.empty()) {
            found[refused(effect)] = effect.refused;
            CHECK_FALSE(effect.known());
        }
        if (effect.parameter == "guess")
            CHECK(effect.level == Value("mtp"));  // `none` has nothing left to compare with
        if (effect.level == Value("b"))
            CHECK(effect.gain.value == Approx(std::sqrt(0.6) - 1).margin(0.02));
    }
    CHECK(found.size() == 2);
    CHECK(found[{"guess", "mtp"}].starts_with("limit success_ratio >= 0.99 broken: 0.514"));
    CHECK(found[{"engine", "c"}].starts_with("out_of_memory: no room"));
    for (const PairEffect& pair : effects.pairs)
        for (std::size_t k = 0; k < 2; ++k)
            CHECK_FALSE(found.contains({pair.parameters[k], text_of(pair.levels[k])}));
    // One that passes is enough, and where nothing passes nothing is set apart.
    std::vector<Trial> one_passes = history;
    for (Trial& trial : one_passes)
        if (trial.configuration == problem.space.completed({{"guess", "mtp"}}))
            trial.outcome = Measurement{{{metric, {900}}, {"success_ratio", {1}}}};
    const Effects of_one = Explanation(problem, one_passes, bayesian).effects();
    for (const MainEffect& effect : of_one.main)
        CHECK(effect.refused.empty() == (effect.level != Value("c")));
    std::vector<Trial> none_passes = history;
    std::erase_if(none_passes, [](const Trial& trial) {
        return *trial.configuration.find("guess") == Value("none");
    });
    const Effects of_none = Explanation(problem, none_passes, bayesian).effects();
    CHECK(!of_none.main.empty());
    for (const MainEffect& effect : of_none.main) CHECK(effect.refused.empty());
}

TEST_CASE("effects: levels that are left out are counted") {
    std::vector<Value> many;
    for (std::int64_t i = 0; i < 70; ++i) many.emplace_back("m" + std::to_string(i));
    const Problem problem(
        SearchSpace({Parameter::integer("blocks", 1, 64), Parameter::integer("few", 1, 4),
                     Parameter::real("share", 0, 1), Parameter::choice("many", many)}),
        {metric}, {});
    const auto history = TuningTask::searched(
        problem, Random(), 12, 1, [](const Configuration& one, Rng&) -> Outcome {
            return Measurement{{{metric, {1000 + number(one, "blocks")}}}};
        });
    const Bayesian bayesian;
    const Effects effects = Explanation(problem, history, bayesian).effects();
    CHECK(effects.left_out(problem.space.at("blocks")) == 64 - 8);
    CHECK(effects.left_out(problem.space.at("few")) == 0);
    CHECK(effects.left_out(problem.space.at("share")) == 0);
    CHECK(effects.left_out(problem.space.at("many")) == 70 - 64);
}
