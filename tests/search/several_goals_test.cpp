// SPDX-License-Identifier: Apache-2.0
// Several goals: fronts, what a point is expected to add to one, what the optimizer makes of it and
// what is recommended.
#include "base/dominance.hpp"
#include "search/hypervolume.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/two_goal_task.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using Points = std::vector<Staircase::Point>;

/// The mean of `f` over draws of independent normals, and its standard error.
std::pair<double, double> drawn(const std::vector<Prediction>& goals,
                                const std::function<double(const std::vector<double>&)>& f) {
    constexpr int draws = 400'000;
    Rng rng(7);
    double sum = 0;
    double squares = 0;
    std::vector<double> point(goals.size());
    for (int i = 0; i < draws; ++i) {
        for (std::size_t k = 0; k < goals.size(); ++k)
            point[k] = goals[k].mean + std::sqrt(goals[k].variance) * rng.normal();
        const double value = f(point);
        sum += value;
        squares += value * value;
    }
    const double mean = sum / draws;
    return {mean, std::sqrt((squares / draws - mean * mean) / draws)};
}

/// The area over the reference that at least one point dominates, by counting cells.
double area_by_cells(const Points& points, const Staircase::Point& reference, double most) {
    constexpr int cells = 1000;
    const double width = (most - reference[0]) / cells;
    const double height = (most - reference[1]) / cells;
    int inside = 0;
    for (int i = 0; i < cells; ++i)
        for (int j = 0; j < cells; ++j)
            inside += any_of(points, [&](const Staircase::Point& point) {
                return point[0] > reference[0] + (i + 0.5) * width &&
                       point[1] > reference[1] + (j + 0.5) * height;
            });
    return inside * width * height;
}

Trial told_both(std::size_t id, const char* level, double rate, double wait) {
    Trial trial{id, Configuration::of({{"a", Value(level)}})};
    trial.outcome = Measurement{{{"rate", {rate}}, {"wait", {wait}}}};
    return trial;
}
Problem small_problem(Decision decision = {Decision::Rule::published}) {
    return Problem(
        SearchSpace({Parameter::choice("a", {"p", "q", "r", "s", "t"})}),
        Objective(std::vector<Goal>{{"rate", Direction::maximize}, {"wait", Direction::minimize}}),
        decision);
}
std::string level_of(const Configuration& configuration) {
    return text_of(*configuration.find("a"));
}

}  // namespace

TEST_CASE("front: a point stays that no other beats in everything, equal ones stay together") {
    CHECK(non_dominated({}).empty());
    CHECK(non_dominated({{1, 1}}) == std::vector<std::size_t>{0});
    CHECK(non_dominated({{1, 3}, {2, 2}, {2, 1}, {3, 0}, {2, 2}}) ==
          std::vector<std::size_t>{0, 1, 3, 4});
    CHECK(non_dominated({{1, 1, 1}, {1, 1, 2}, {0, 5, 0}}) == std::vector<std::size_t>{1, 2});
}

TEST_CASE("hypervolume: the area under the staircase, and what a point adds to it") {
    const Points points{{4, 1}, {1, 4}, {2, 2}, {3, 2.5}, {0.5, -1}, {3, 2.5}};
    const Staircase staircase(points, {0, 0});
    CHECK(staircase.steps() == Points{{1, 4}, {3, 2.5}, {4, 1}});
    CHECK(hypervolume(staircase, {0, 0}) == Approx(1 * 4 + 2 * 2.5 + 1 * 1));
    CHECK(hypervolume(staircase, {0, 0}) ==
          Approx(area_by_cells(points, {0, 0}, 5)).epsilon(0.002));
    for (const Staircase::Point& point :
         Points{{2, 3}, {5, 5}, {0.5, 4.5}, {1, 1}, {4.5, 0.5}, {-1, 9}}) {
        Points with = points;
        with.push_back(point);
        CHECK(staircase.improvement(point) ==
              Approx(hypervolume(Staircase(with, {0, 0}), {0, 0}) - hypervolume(staircase, {0, 0}))
                  .margin(1e-12));
    }
    CHECK(hypervolume(Staircase({}, {0, 0}), {0, 0}) == 0);
    CHECK(Staircase({}, {0, 0}).improvement({2, 3}) == Approx(6));
}

TEST_CASE("expected hypervolume improvement: what drawing says") {
    const std::vector<Points> fronts{{},
                                     {{0, 0}},
                                     {{1, 1}, {1, 1}},
                                     {{-1, 1}, {1, -1}},
                                     {{-1.5, 0.9}, {-0.4, 0.7}, {0.3, -0.2}, {1.1, -1}}};
    const std::vector<std::vector<Prediction>> candidates{{{0.2, 1}, {0.1, 0.5}},
                                                          {{-1, 0.3}, {1.5, 0.2}},
                                                          {{2, 0.1}, {2, 4}},
                                                          {{-0.5, 2}, {-0.5, 2}},
                                                          {{0.5, 0.0001}, {-0.1, 0.0004}}};
    for (const Points& front : fronts)
        for (const std::vector<Prediction>& goals : candidates) {
            const Staircase staircase(front, {-2, -2});
            const auto [mean, error] = drawn(goals, [&](const std::vector<double>& point) {
                return staircase.improvement({point[0], point[1]});
            });
            INFO(front.size() << " on the front, at " << goals[0].mean << ", " << goals[1].mean
                              << ": drawn " << mean);
            CHECK(std::abs(std::exp(staircase.log_expected_improvement(goals[0], goals[1])) -
                           mean) < 4 * error + 1e-9);
        }
}

TEST_CASE(
    "expected hypervolume improvement: of one step whose other goal is known it is the expected "
    "improvement times the height") {
    const Staircase staircase(Points{{0.5, 2}}, {-3, 1});
    for (const double mean : {-2.0, 0.4, 3.0}) {
        const Prediction first{mean, 0.3};
        const Prediction known{
            2 - 1e-8,
            // as high as the step: only what is beyond it in the first goal counts, by 2 - 1
            1e-20};
        CHECK(staircase.log_expected_improvement(first, known) ==
              Approx(log_expected_improvement(first, 0.5)).margin(1e-7).epsilon(1e-12));
    }
    // Far to the right of all, the second goal decides alone: EI over the reference, times the
    // distance.
    const Prediction far{1e6, 1};
    const Prediction second{1.4, 0.2};
    const double area = staircase.improvement({1e6, 0}) +
                        (1e6 + 3) * std::exp(log_expected_improvement(second, 2)) +
                        (1e6 - 0.5) * (std::exp(log_expected_improvement(second, 1)) -
                                       std::exp(log_expected_improvement(second, 2)));
    CHECK(staircase.log_expected_improvement(far, second) == Approx(std::log(area)));
}

TEST_CASE(
    "expected hypervolume improvement: finite, and in order, wherever the expected improvement "
    "is") {
    const Staircase staircase(Points{{0, 3}, {1e-9, 2}, {1, 1}, {2, 0}}, {-1, -1});
    double last = -std::numeric_limits<double>::infinity();
    for (const double mean : {-1e8, -1e4, -300.0, -40.0, -10.0, -3.0, 0.0, 2.0, 40.0}) {
        const double value = staircase.log_expected_improvement({mean, 0.01}, {mean, 0.04});
        INFO(mean << ": " << value);
        CHECK(std::isfinite(value));
        CHECK(value > last);
        last = value;
    }
    // There the best way in is below all steps of one goal: over the reference in both, and over a
    // step in one.
    const Prediction low{-40, 1};
    const double beyond_last = log_expected_improvement(low, 2) + log_expected_improvement(low, -1);
    CHECK(staircase.log_expected_improvement(low, low) >= beyond_last);
    CHECK(Staircase({}, {0, 0}).log_expected_improvement({-50, 1}, {-60, 1}) ==
          Approx(log_expected_improvement({-50, 1}, 0) + log_expected_improvement({-60, 1}, 0)));
}

TEST_CASE(
    "several goals: the front is of means among what passes, and the best in the leading goal is "
    "recommended") {
    Problem problem = small_problem();
    problem.replicates_inform = false;
    std::vector<Trial> history{told_both(0, "p", 100, 1), told_both(1, "q", 120, 2),
                               told_both(2, "r", 110, 2.5), told_both(3, "s", 90, 0.5),
                               told_both(4, "t", 130, 3)};
    Recommendation result = recommend(problem, history);
    REQUIRE(result.front.size() == 4);
    CHECK(level_of(result.front[0].configuration) == "t");
    CHECK(level_of(result.front[3].configuration) == "s");
    CHECK(result.front[3].estimates[0].mean == 90);
    CHECK(result.front[3].estimates[1].mean == 0.5);
    CHECK(result.front[3].estimates[1].low() < 0.5);
    CHECK(result.front[3].estimates[1].high() > 0.5);
    CHECK(level_of(result.recommended) == "t");
    CHECK(result.gain.value == Approx(0.3));
    // A mean, not one measurement, and only of what passes.
    history.push_back(told_both(5, "t", 100, 3));
    history[1].outcome = Measurement{{{"rate", {120}}}};
    result = recommend(problem, history);
    CHECK(level_of(result.recommended) == "t");
    CHECK(result.front[0].estimates[0].mean == Approx(115));
    CHECK(result.front.size() == 4);
    const Standings standings = problem.standings(history);
    CHECK(standings.find(history[1].configuration)->refused == "the result has no wait");
    // Equal in the leading goal: the one that is better in the other.
    result =
        recommend(problem, std::vector<Trial>{told_both(0, "p", 100, 1), told_both(1, "q", 120, 2),
                                              told_both(2, "r", 120, 1.5)});
    CHECK(level_of(result.recommended) == "r");
    // With one goal there is no front to speak of, and the first of equal ones stays the best.
    Problem single(SearchSpace({Parameter::choice("a", {"p", "q", "r", "s", "t"})}),
                   Objective{"rate"}, {});
    single.replicates_inform = false;
    result =
        recommend(single, std::vector<Trial>{told_both(0, "p", 100, 1), told_both(1, "q", 120, 2),
                                             told_both(2, "r", 120, 1.5)});
    CHECK(result.front.empty());
    CHECK(level_of(result.recommended) == "q");
}

TEST_CASE(
    "several goals: what is as good in the leading goal and clearly better in another is worth "
    "having") {
    Problem problem = small_problem();
    problem.replicates_inform = false;
    CHECK(recommend(problem,
                    std::vector<Trial>{told_both(0, "p", 100, 1), told_both(1, "q", 100.5, 1.5)})
              .keep_default);
    const Recommendation quicker = recommend(
        problem, std::vector<Trial>{told_both(0, "p", 100, 1), told_both(1, "q", 100.5, 0.5)});
    CHECK_FALSE(quicker.keep_default);
    CHECK(level_of(quicker.recommended) == "q");
}

TEST_CASE("several goals: each has the noise of its own replicates") {
    const Problem problem = small_problem();
    std::vector<Trial> history{told_both(0, "p", 100, 1)};
    for (std::size_t i = 1; i < 12; ++i)
        history.push_back(told_both(i, "p", 100 + 0.1 * double(i % 2), i % 2 == 0 ? 0.8 : 1.2));
    const Standings standings = problem.standings(history);
    CHECK(standings.noises().size() == 2);
    CHECK(standings.noise() < 0.01);
    CHECK(standings.noises()[1] > 0.1);
    CHECK(standings.all().front().goals[1].estimate.relative_error >
          10 * standings.all().front().goals[0].estimate.relative_error);
}

TEST_CASE(
    "several goals: thirty noisy trials find more of the front than one goal's search and than "
    "chance") {
    Decision decision;
    decision.noise_cv = 0.03;
    const Problem problem(TuningTask::space(), TwoGoalTask::objective(), decision);
    double by_front = 0;
    double by_chance = 0;
    int above = 0;
    constexpr std::uint64_t seeds = 8;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const auto share = [&](const Strategy& strategy) {
            const auto history = TuningTask::searched(
                problem, strategy, 30, seed, [](const Configuration& configuration, Rng& rng) {
                    return TwoGoalTask::measured(configuration, 0.03, rng);
                });
            return TwoGoalTask::share_of_area(problem, recommend(problem, history).front);
        };
        const double found = share(Bayesian());
        const double drawn_evenly = share(Random());
        by_front += found / seeds;
        by_chance += drawn_evenly / seeds;
        above += found > drawn_evenly ? 1 : 0;
    }
    // 0.95 and 0.69 over 24 seeds; 0.61 where the leading goal's improvement decides alone.
    INFO(by_front << " against " << by_chance);
    CHECK(by_front > by_chance + 0.1);
    CHECK(by_front > 0.85);
    CHECK(above >= 7);
}

TEST_CASE(
    "several goals: an ask is a function of the history alone, beside what is pending, the end "
    "confirms the front") {
    const auto answer = [](const Configuration& configuration, Rng& rng) -> Outcome {
        return TwoGoalTask::measured(configuration, 0.02, rng);
    };
    const Problem problem(TuningTask::space(), TwoGoalTask::objective(), {});
    const Bayesian strategy;
    auto history = TuningTask::searched(problem, strategy, 30, 4, answer);
    CHECK(recommend(problem, history).front.size() > 2);

    history.resize(14);
    Rng unused(1);
    const auto asked = [&](const Bayesian& one, const std::vector<Trial>& trials) {
        return std::get<Proposal>(one.ask(problem, trials, unused)).configuration;
    };
    const Configuration first = asked(strategy, history);
    CHECK(asked(Bayesian(), history) == first);
    auto turned = history;
    std::reverse(turned.begin(), turned.end());
    CHECK(asked(Bayesian(), turned) == first);
    std::set<Configuration> pending;
    for (int i = 0; i < 3; ++i) {
        const Configuration next = asked(strategy, history);
        CHECK(pending.insert(next).second);
        history.push_back({history.size(), next});
    }
}

TEST_CASE("several goals: what is hard to learn from is borne") {
    const Problem problem(TuningTask::space(), TwoGoalTask::objective(), {});
    const auto constant = [](const Configuration&, Rng&) -> Outcome {
        return Measurement{{{TwoGoalTask::rate, {1000}}, {TwoGoalTask::wait, {1}}}};
    };
    const auto all_fail = [](const Configuration&, Rng&) -> Outcome {
        return Failure{FailureKind::not_ready_in_time, "never"};
    };
    const auto half = [](const Configuration&, Rng&) -> Outcome {
        return Measurement{{{TwoGoalTask::rate, {1000}}}};
    };
    const auto wide = [](const Configuration& configuration, Rng&) -> Outcome {
        const double power = -6 + 12 * std::log2(number(configuration, "tokens")) / 16;
        return Measurement{{{TwoGoalTask::rate, {std::pow(10, power)}},
                            {TwoGoalTask::wait, {std::pow(10, power)}}}};
    };
    for (const TuningTask::Answering& answer :
         {TuningTask::Answering(constant), TuningTask::Answering(all_fail),
          TuningTask::Answering(half), TuningTask::Answering(wide)})
        CHECK(TuningTask::searched(problem, Bayesian(), 16, 1, answer).size() == 16);
}
