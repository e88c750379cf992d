// SPDX-License-Identifier: Apache-2.0
// What the parameters do over a whole space: against functions whose effects are known.
#include "search/effects.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <chrono>
#include <cmath>
#include <iostream>

using namespace servetune;
using namespace servetune::test;

namespace {

SearchSpace known_space() {
    return SearchSpace({Parameter::choice("backend", {"a", "b", "c", "d"}), Parameter::integer("size", 1, 16, Scale::log2),
                        Parameter::integer("depth", 1, 4), Parameter::choice("cache", {"off", "on"}),
                        Parameter::choice("mode", {"x", "y"})});
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
        return Measurement{{{metric, {1000 * std::exp(logarithm(configuration) + cv * rng.normal())}}}};
    };
}

}  // namespace

TEST_CASE("effects: known main effects lie within their intervals, and the known interaction comes first") {
    const Problem problem(known_space(), {metric}, {});
    const Bayesian bayesian;
    const Beliefs beliefs;
    std::size_t within = 0, all = 0, first = 0, known = 0, runs = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed, ++runs) {
        const auto history = TuningTask::searched(problem, Random(), 60, seed, noisy_logarithm(0.02));
        const Effects effects(problem, history, bayesian, beliefs);
        REQUIRE(effects.floor().enough());
        REQUIRE(effects.learned());
        CHECK(effects.main().size() == 4 + 5 + 4 + 2 + 2);
        for (const MainEffect& effect : effects.main()) {
            CHECK(effect.gain.low <= effect.gain.value);
            CHECK(effect.gain.value <= effect.gain.high);
            const double truth = true_effect(problem, effect.parameter, effect.level);
            within += truth >= effect.gain.low && truth <= effect.gain.high ? 1 : 0;
            known += std::abs(truth) > 0.05 && effect.gain.known() ? 1 : 0;
            ++all;
        }
        REQUIRE(!effects.pairs().empty());
        const PairEffect& strongest = effects.pairs().front();
        first += strongest.parameters == std::array<std::string, 2>{"size", "cache"} && strongest.gain.known() ? 1 : 0;
        // Of the variance of (0.05 +- 0.08) size and the rest; 0.0128 of 0.0257 in ln units.
        CHECK(strongest.share == Approx(0.5).margin(0.2));
        CHECK(effects.pairs().size() <= Effects::most_pairs);
        for (std::size_t i = 1; i < effects.pairs().size(); ++i) CHECK(effects.pairs()[i].share < 0.1);
    }
    INFO(within << " of " << all << " within, " << known << " known");
    CHECK(static_cast<double>(within) >= 0.88 * static_cast<double>(all));  // 95 % were the model the truth
    CHECK(first == runs);
    CHECK(known >= 4 * runs);  // of the five that are beyond 5 %
}

TEST_CASE("effects: nothing is said of too few configurations, nor where nothing is to be learned") {
    const Problem problem(known_space(), {metric}, {});
    const Bayesian bayesian;
    const Beliefs beliefs;
    const auto six = TuningTask::searched(problem, Random(), 6, 1, noisy_logarithm(0.02));
    const Effects few(problem, six, bayesian, beliefs);
    CHECK(few.floor().measured == 6);
    CHECK(few.floor().needed() == 7);
    CHECK_FALSE(few.floor().enough());
    CHECK_FALSE(few.learned());
    CHECK(few.main().empty());
    CHECK(few.pairs().empty());
    std::size_t learned = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto history = TuningTask::searched(problem, Random(), 25, seed, [](const Configuration&, Rng& rng) -> Outcome {
            return Measurement{{{metric, {1000 * std::exp(0.01 * rng.normal())}}}};
        });
        const Effects nothing(problem, history, bayesian, beliefs);
        REQUIRE(nothing.floor().enough());
        learned += nothing.learned() ? 1 : 0;
        if (!nothing.learned()) CHECK(nothing.pairs().empty());
    }
    CHECK(learned <= 9);  // 5; 3 of 60 would be if the model were the truth
    const std::vector<Trial> none;
    CHECK_FALSE(Effects(problem, none, bayesian, beliefs).floor().enough());
}

TEST_CASE("effects: failures, conditions, constraints and reals are borne, in either direction, in bounded time") {
    std::vector<Parameter> parameters{Parameter::choice("backend", {"fa3", "flashinfer", "triton", "torch"}),
                                      Parameter::integer("seqs", 32, 1024, Scale::log2).with_default(256),
                                      Parameter::integer("tokens", 1024, 65536, Scale::log2).with_default(8192),
                                      Parameter::choice("method", {"none", "ngram"}),
                                      Parameter::integer("guesses", 1, 7).when("method", {"ngram"}),
                                      Parameter::integer("blocks", 1, 64),
                                      Parameter::real("share", 0.5, 0.95).with_default(0.9)};
    const Problem problem(SearchSpace(parameters, {require("tokens >= 32 * seqs", "")}), {"latency_seconds", Direction::minimize}, {});
    const auto history = TuningTask::searched(problem, Random(), 60, 1, [](const Configuration& configuration, Rng& rng) -> Outcome {
        if (TuningTask::fails(configuration)) return Failure{FailureKind::out_of_memory, "no room"};
        return Measurement{
            {{"latency_seconds", {std::exp(-number(configuration, "share") + 0.01 * rng.normal()) / TuningTask().truth(configuration)}}}};
    });
    const Bayesian bayesian;
    const Beliefs beliefs;
    const auto begin = std::chrono::steady_clock::now();
    const Effects effects(problem, history, bayesian, beliefs);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::cout << "effects of 60 trials in a space of " << problem.feasible.size() << ": " << seconds << " s\n";
    CHECK(seconds < 20);  // two on an idle machine
    CHECK(effects.learned());
    std::set<std::string> seen;
    for (const MainEffect& effect : effects.main()) {
        seen.insert(effect.parameter);
        CHECK(std::isfinite(effect.gain.value));
        CHECK(effect.gain.low <= effect.gain.high);
        if (effect.parameter == "backend" && effect.level == Value("torch")) CHECK(effect.gain.high < 0);  // slower is worse
    }
    CHECK(seen.size() == parameters.size());
    // The same again: nothing is drawn from a clock.
    const Effects again(problem, history, bayesian, beliefs);
    REQUIRE(again.main().size() == effects.main().size());
    for (std::size_t i = 0; i < effects.main().size(); ++i) CHECK(again.main()[i].gain.value == effects.main()[i].gain.value);
}
