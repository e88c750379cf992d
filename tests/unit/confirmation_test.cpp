// SPDX-License-Identifier: Apache-2.0
// The last trials: the finalists and the default again, until who is best is settled or the budget is spent.
#include "servetune/space/neighbours.hpp"
#include "servetune/strategy/bayesian.hpp"
#include "servetune/study/recommendation.hpp"
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
constexpr std::ptrdiff_t last_trials = 4;

SearchSpace space_to_confirm() {
    return SearchSpace({Parameter::choice("backend", {"plain", "fast", "other"}), Parameter::choice("size", {8, 16, 32, 64, 128}, true),
                        Parameter::choice("mode", {"a", "b", "c"})});
}

/// How many of the last trials measured something again. `effect`: what each of the three right levels gives.
std::ptrdiff_t confirmed(const Problem& problem, double effect, double noise, std::uint64_t seed, std::vector<Trial>& history) {
    Bayesian::Options options;
    options.trials = trials_to_confirm;
    options.learning.seed = seed;
    history =
        TuningTask::searched(problem, Bayesian(options), trials_to_confirm, seed, [&](const Configuration& one, Rng& draws) -> Outcome {
            const int right =
                (text_of(*one.find("backend")) == "fast") + (text_of(*one.find("mode")) == "b") + (text_of(*one.find("size")) == "64");
            return Measurement{{{metric, {1000 * std::exp(effect * right + noise * draws.normal())}}}};
        });
    return std::count_if(history.end() - last_trials, history.end(), [](const Trial& trial) { return trial.why.starts_with("again: "); });
}

}  // namespace

TEST_CASE("confirmation: the last trials go on searching once who is best is settled, and repeat as long as it is not") {
    const Problem problem(space_to_confirm(), {metric}, {});
    std::vector<Trial> history;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CHECK(confirmed(problem, 0.2, 0.003, seed, history) <= 1);
        const Recommendation result = recommend(problem, history);
        CHECK(result.gain.value == Approx(std::expm1(0.6)).margin(0.04));
        CHECK(result.p_best >= 0.95);
        const auto measured =
            std::count_if(history.begin(), history.end(), [&](const Trial& trial) { return trial.configuration == result.recommended; });
        CHECK(measured >= 2);  // never settled on one measurement
    }
    CHECK(confirmed(problem, 0.01, 0.03, 1, history) >= last_trials - 1);  // one may be the smaller command
}

TEST_CASE("confirmation: what lost a race to a configuration that is out later is measured in full") {
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
        told(std::get<Proposal>(answer).configuration, 5000 * std::exp(0.003 * noise.normal()), 0.5);
    }
    Configuration best, lost;
    for (const Configuration& one : neighbours(problem.space, history.back().configuration))
        if (std::none_of(history.begin(), history.end(), [&](const Trial& trial) { return trial.configuration == one; }))
            (best == Configuration{} ? best : lost) = one;
    told(best, 10000, 0.9);
    Trial& ended = told(lost, 7500, 0.5);
    ended.outcome = Measurement{{{metric, {7500, 1000}}, {std::string(trial_had_to_reach), {8333}}}, {Verdict::suspect, {{"given_up"}}}};
    const auto next = [&] { return std::get<Proposal>(strategy.ask(problem, history, noise)); };
    CHECK_FALSE(next().why.starts_with("again, in full"));
    told(best, 10000, 1.2);  // it breaks the limit now
    CHECK(next().configuration == lost);
    CHECK(next().why.starts_with("again, in full"));
    told(lost, 7400, 0.5);
    CHECK_FALSE(next().why.starts_with("again, in full"));
}
