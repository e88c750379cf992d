// SPDX-License-Identifier: Apache-2.0
// What becomes of the figures of several workloads: their mean, the one that gains least, or each a
// goal.
#include "servetune/recommendation.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/rng.hpp"

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
        const double noise = 1 + 0.002 * static_cast<double>(round);
        history.push_back(trial_of_two(3 * round, "usual", 100 * noise, 1000 / noise));
        history.push_back(
            trial_of_two(3 * round + 1, "lopsided", 150 * noise, 900 * noise));  // +50 %, -10 %
        history.push_back(
            trial_of_two(3 * round + 2, "even", 110 / noise, 1080 * noise));  // +10 %, +8 %
    }
    return history;
}

std::string text_over(const std::string& over, const std::string& workloads) {
    return "study: own\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nworkloads: [" +
           workloads + "]\nobjective: {maximize: output_throughput, over: " + over +
           "}\nevaluator: {simulate: {}}\n";
}

}  // namespace

TEST_CASE(
    "over workloads: the mean recommends what one workload gains most from, the worst what all "
    "gain from") {
    const std::vector<Trial> history = lopsided_history();
    Problem of_the_mean(three_modes(), Objective("rate"), {});
    of_the_mean.replicates_inform = false;
    CHECK(text_of(*recommend(of_the_mean, history).recommended.find("mode")) == "lopsided");
    Objective of_the_worst("rate");
    of_the_worst.over = Objective::Over::worst;
    Problem problem(three_modes(), of_the_worst, {});
    problem.replicates_inform = false;
    const Recommendation result = recommend(problem, history);
    CHECK(text_of(*result.recommended.find("mode")) == "even");
    CHECK(result.gain.value == Approx(0.08).margin(0.01));
    CHECK(problem.objective.goals_text() == "maximize rate in the workload that gains least");
}

TEST_CASE("over workloads: of what is to be small the workload that grows most counts") {
    std::vector<Trial> history{trial_of_two(0, "usual", 1, 2, "wait"),
                               trial_of_two(1, "lopsided", 0.5, 2.2, "wait"),
                               trial_of_two(2, "even", 0.9, 1.8, "wait")};
    Objective objective("wait", Direction::minimize);
    objective.over = Objective::Over::worst;
    const Standings standings(history, objective, Decision{});
    const double usual = std::sqrt(2.0);
    CHECK(standings.all()[0].estimate().mean == Approx(usual));
    CHECK(standings.all()[1].estimate().mean == Approx(usual * 1.1));
    CHECK(standings.all()[2].estimate().mean == Approx(usual * 0.9));
}

TEST_CASE(
    "over workloads: where the default fails, the worst is that over the first configuration with "
    "figures") {
    std::vector<Trial> history{trial_of_two(0, "usual", 1, 2), trial_of_two(1, "lopsided", 1, 2),
                               trial_of_two(2, "even", 3, 1.9)};
    history.front().outcome = Failure{FailureKind::out_of_memory, "no memory"};
    Objective objective("rate");
    objective.over = Objective::Over::worst;
    const Standings standings(history, objective, Decision{});
    CHECK(standings.all()[1].estimate().mean == Approx(std::sqrt(2.0)));
    CHECK(standings.all()[2].estimate().mean ==
          Approx(std::sqrt(2.0) * 0.95));  // the mean would be 1.7 times as much
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
    CHECK(Standings(history, objective, decision).all()[2].passes());
    objective.over = Objective::Over::worst;
    CHECK(Standings(history, objective, Decision{}, even).all()[2].estimate().mean ==
          Approx(std::sqrt(8.0) * 0.95));
}

TEST_CASE("over workloads: figures without workloads of their own stay as they are") {
    std::vector<Trial> history{trial_of_two(0, "usual", 1, 2), trial_of_two(1, "even", 2, 3)};
    for (Trial& trial : history)
        trial.outcome = Measurement{{{"rate", {trial.id == 0 ? 5.0 : 6.0}}}};
    Objective objective("rate");
    objective.over = Objective::Over::worst;
    CHECK(Standings(history, objective, Decision{}).all()[1].estimate().mean == 6);
}

TEST_CASE("over workloads: a study file says which, and each is a goal of every workload") {
    const TemporaryFolder folder;
    const auto objective_of = [&](const std::string& over, const std::string& workloads) {
        return load_study(folder.write("study.yaml", text_over(over, workloads)),
                          Catalogue(search_spaces))
            .objective;
    };
    const std::string two =
        "{workload: x, use: random}, {workload: y, use: random, input_tokens: 99}";
    CHECK(objective_of("worst", two).over == Objective::Over::worst);
    const Objective each = objective_of("each", two);
    REQUIRE(each.goals.size() == 2);
    CHECK(each.goals[0].metric == "output_tokens_per_second@x");
    CHECK(each.goals[1].metric == "output_tokens_per_second@y");
    CHECK(message_of<ParseError>([&] {
              (void)objective_of("worst", "{workload: x, use: random}");
          }).find("there is one") != std::string::npos);
}

TEST_CASE(
    "over workloads: which one is the worst is decided by means, so that noise makes no gain of "
    "its own") {
    // The default measured often: the smallest of three noisy figures is 2 % below their mean, and
    // that is no loss.
    Rng noise(1);
    std::vector<Trial> history;
    for (std::uint64_t id = 0; id < 40; ++id) {
        Trial trial{
            id, Configuration::of({{"mode", Value(std::string(id % 2 == 0 ? "usual" : "even"))}})};
        Metrics figures;
        double sum = 0;
        for (const char* workload : {"rate@a", "rate@b", "rate@c"}) {
            const double log = std::log(100.0) + 0.03 * noise.normal();
            figures[workload] = {std::exp(log)};
            sum += log / 3;
        }
        figures["rate"] = {std::exp(sum)};
        trial.outcome = Measurement{figures};
        history.push_back(std::move(trial));
    }
    Objective objective("rate");
    objective.over = Objective::Over::worst;
    const Standings standings(history, objective, Decision{});
    CHECK(standings.all()[0].estimate().mean == Approx(100).epsilon(0.01));
    CHECK(standings.all()[1].estimate().mean ==
          Approx(100).epsilon(0.02));  // the worst of three means of 20
}
