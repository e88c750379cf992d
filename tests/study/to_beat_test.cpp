// SPDX-License-Identifier: Apache-2.0
#include "study/trial_rules.hpp"
#include "support/test.hpp"

#include <cmath>

using namespace servetune;

TEST_CASE(
    "to beat: of several workloads the best figure of what passes, each with the seconds that it "
    "took") {
    const Problem problem(SearchSpace({Parameter::choice("a", {"x", "y", "z", "u"})}),
                          {"rate", Direction::maximize, {Limit::parse("wait <= 1")}}, {});
    const auto configuration = [&](const char* value) {
        return problem.space.changed(problem.space.default_configuration(), {{"a", Value(value)}});
    };
    const auto told = [&](std::uint64_t id, const char* value, double chat, double code,
                          double wait, Validity validity = {}) {
        Trial trial{id, configuration(value)};
        trial.outcome = Measurement{{{"rate", {std::sqrt(chat * code)}},
                                     {"rate@chat", {chat}},
                                     {"rate@code", {code}},
                                     {"wait", {wait}},
                                     {"duration_seconds@chat", {1000 / chat}},
                                     {"duration_seconds@code", {1000 / code}}},
                                    std::move(validity)};
        return trial;
    };
    std::vector<Trial> trials{told(0, "x", 100, 10, 0.5), told(1, "y", 50, 25, 0.5),
                              told(2, "z", 500, 500, 2)};
    trials.push_back({3, configuration("u")});
    const auto best = to_beat(problem, trials, trials.back());
    REQUIRE(best.has_value());
    CHECK(best->value == Approx(std::sqrt(50.0 * 25)));
    REQUIRE(best->of_workloads.size() == 2);  // nothing of the one that breaks a limit
    CHECK(best->of_workloads.at("chat").figure == 100);
    CHECK(best->of_workloads.at("chat").seconds == 10);
    CHECK(best->of_workloads.at("code").figure == 25);
    CHECK(best->of_workloads.at("code").seconds == 40);
    CHECK_FALSE(to_beat(problem, trials, trials.front()).has_value());
}
