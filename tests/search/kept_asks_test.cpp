// SPDX-License-Identifier: Apache-2.0
// The same history and seed give the same asks whatever compiled them: tests/data/asks/bayesian.txt
// was written by g++ 12 (optimizer_tests "[.asks]" prints it anew).
#include "servetune/bayesian.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr std::size_t asks = 25;

/// A wobble of some per cent that depends on nothing but the configuration and how often it was
/// measured; and figures with three decimals, so that the last bit of an exponential decides
/// nothing.
double told_value(double truth, const Configuration& configuration, std::size_t id) {
    const auto wobble = double(derive_seed(configuration.fingerprint().bits, id) % 2001) / 1000 - 1;
    return std::round(truth * (1 + 0.02 * wobble) * 1000) / 1000;
}

/// Each ask from an object of its own and from the history turned round: as after a resume, in any
/// order of telling.
std::vector<std::string> asks_of(
    const std::string& name, const Problem& problem, const Bayesian::Options& options,
    const std::function<Outcome(const Configuration&, std::size_t)>& measure) {
    std::vector<Trial> history;
    std::vector<std::string> lines;
    while (history.size() < asks) {
        std::vector<Trial> turned(history.rbegin(), history.rend());
        Rng unused(1);
        const Answer answer = Bayesian(options).ask(problem, turned, unused);
        const auto* proposal = std::get_if<Proposal>(&answer);
        if (proposal == nullptr) {
            lines.push_back(name + " no proposal");
            break;
        }
        Trial trial{history.size(), proposal->configuration};
        trial.outcome = measure(trial.configuration, trial.id);
        lines.push_back(name + " " + std::to_string(trial.id) + ": " + trial.configuration.text() +
                        (trial.failure() != nullptr ? " fails" : ""));
        history.push_back(std::move(trial));
    }
    return lines;
}

/// Conditional parameters, failures of two kinds, a limit.
std::vector<std::string> asks_with_failures() {
    Objective objective{metric};
    objective.limits = {Limit::parse("time_to_first_token_p99_seconds <= 1")};
    const Problem problem(TuningTask::space(), objective, {});
    Bayesian::Options options;
    options.trials = asks;
    return asks_of(
        "limits", problem, options,
        [](const Configuration& configuration, std::size_t id) -> Outcome {
            // Half of the space: much memory, and guesses of one backend.
            if (std::log2(number(configuration, "seqs")) +
                    std::log2(number(configuration, "tokens")) >
                21)
                return Failure{FailureKind::out_of_memory, "no room"};
            if (configuration.find("guesses") != nullptr &&
                *configuration.find("backend") == Value("flashinfer"))
                return Failure{FailureKind::unsupported, "no guesses here"};
            return Measurement{
                {{metric, {told_value(TuningTask().truth(configuration), configuration, id)}},
                 {"time_to_first_token_p99_seconds",
                  {told_value(number(configuration, "tokens") / 16384, configuration, id)}}}};
        });
}

/// A belief that is about right, of what is best and of what works.
std::vector<std::string> asks_with_beliefs() {
    class Shifted : public PriorMean {
    public:
        [[nodiscard]] std::string name() const override { return "a model that is a doubling off"; }
        [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
            return {std::log(std::round(TuningTask(1).truth(configuration))),
                    TuningTask::fails(configuration) ? -1.0 : 1.0};
        }
    };
    const Problem problem(
        SearchSpace({Parameter::choice("backend", {"fa3", "flashinfer", "triton", "torch"}),
                     Parameter::integer("seqs", 32, 1024, Scale::log2).with_default(256),
                     Parameter::integer("tokens", 1024, 65536, Scale::log2).with_default(8192),
                     Parameter::choice("share", {"0.7", "0.8", "0.9"}, true).with_default("0.9")}),
        {metric}, {});
    Bayesian::Options options;
    options.trials = asks;
    options.beliefs = Beliefs({std::make_shared<Shifted>()});
    return asks_of("beliefs", problem, options,
                   [](const Configuration& configuration, std::size_t id) -> Outcome {
                       if (TuningTask::fails(configuration))
                           return Failure{FailureKind::out_of_memory, "no room"};
                       const double share = real_of(text_of(*configuration.find("share"))).value();
                       const double truth = TuningTask().truth(configuration) *
                                            (1 - (share - 0.75) * (share - 0.75));
                       return Measurement{{{metric, {told_value(truth, configuration, id)}}}};
                   });
}

std::vector<std::string> all_asks() {
    std::vector<std::string> lines = asks_with_failures();
    for (std::string& line : asks_with_beliefs()) lines.push_back(std::move(line));
    return lines;
}

}  // namespace

TEST_CASE(
    "bayesian: asks are those that were kept, whatever the compiler, from fresh objects and "
    "histories turned round") {
    std::ifstream file(std::string(SERVETUNE_SOURCE) + "/tests/data/asks/bayesian.txt");
    std::vector<std::string> kept;
    for (std::string line; std::getline(file, line);) kept.push_back(line);
    REQUIRE(kept.size() == 2 * asks);
    const std::vector<std::string> now = all_asks();
    REQUIRE(now.size() == kept.size());
    // The first that differs says it: what follows is another history.
    const auto [was, is] = std::mismatch(kept.begin(), kept.end(), now.begin());
    if (was != kept.end()) {
        INFO("kept: " << *was);
        INFO("now:  " << *is);
        CHECK(*was == *is);
    }
    CHECK(now == kept);
}

TEST_CASE("bayesian: prints its asks, to be kept", "[.asks]") {
    for (const std::string& line : all_asks()) std::cout << line << '\n';
}
