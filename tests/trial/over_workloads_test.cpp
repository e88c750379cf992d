// SPDX-License-Identifier: Apache-2.0
// What becomes of the figures of several workloads: their mean, guarded by each of them.
#include "servetune/recommendation.hpp"
#include "servetune/standings.hpp"
#include "servetune/strategy.hpp"
#include "support/test.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Figures under two workloads, as `combined` writes them.
Trial trial_of_two(std::uint64_t id, const std::string& mode, double a, double b,
                   const std::string& of = "rate") {
    Trial trial{id, Configuration::of({{"mode", Value(mode)}})};
    trial.outcome = Measurement{{{of, {std::sqrt(a * b)}}, {of + "@a", {a}}, {of + "@b", {b}}}};
    return trial;
}

SearchSpace three_modes() {
    return SearchSpace({Parameter::choice("mode", {"usual", "lopsided", "even"})});
}

std::vector<Trial> lopsided_history() {
    std::vector<Trial> history;
    for (std::uint64_t round = 0; round < 3; ++round) {
        const double noise = 1 + 0.002 * double(round);
        history.push_back(trial_of_two(3 * round, "usual", 100 * noise, 1000 / noise));
        history.push_back(
            trial_of_two(3 * round + 1, "lopsided", 150 * noise, 900 * noise));  // +50 %, -10 %
        history.push_back(
            trial_of_two(3 * round + 2, "even", 110 / noise, 1080 * noise));  // +10 %, +8 %
    }
    return history;
}

}  // namespace

TEST_CASE("over workloads: the mean recommends what one workload gains most from") {
    const std::vector<Trial> history = lopsided_history();
    Problem of_the_mean(three_modes(), Objective("rate"), {});
    of_the_mean.replicates_inform = false;
    CHECK(text_of(*recommend(of_the_mean, history).recommended.find("mode")) == "lopsided");
}

TEST_CASE(
    "over workloads: the default of today counts, not that of the first trial, once it changed") {
    std::vector<Trial> history{trial_of_two(0, "usual", 1, 2), trial_of_two(1, "even", 2, 4),
                               trial_of_two(2, "lopsided", 1.9, 8)};
    Decision decision;
    decision.never_worse_than = 0.02;
    Objective objective("rate");
    const Configuration even = history[1].configuration;
    const Standings standings(history, objective, decision, even);
    CHECK(standings.find(even)->passes());
    CHECK_FALSE(standings.all()[0].passes());
    CHECK_FALSE(
        // 5 % behind today's default on one workload, ahead of the first trial's on both
        standings.all()[2].passes());
    CHECK(Standings(history, objective, decision, history.front().configuration).all()[2].passes());
}
