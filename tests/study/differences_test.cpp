// SPDX-License-Identifier: Apache-2.0
// Objectives at or below zero are compared by differences; a measurement without a metric of the
// objective is refused.
#include "servetune/error.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/study.hpp"
#include "support/test.hpp"

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

SearchSpace levels() { return SearchSpace({Parameter::integer("x", 0, 20)}); }

/// Every level twice, with a noise of +- `noise`.
std::vector<Trial> levels_measured(const std::vector<double>& means, double noise,
                                   const std::string& metric = "profit") {
    std::vector<Trial> history;
    for (const double sign : {1.0, -1.0})
        for (std::size_t i = 0; i < means.size(); ++i) {
            history.push_back({history.size(), levels().completed({{"x", std::int64_t(i)}})});
            history.back().outcome = Measurement{{{metric, {means[i] + sign * noise}}}};
        }
    return history;
}

Recommendation concluded_of_differences(const std::vector<Trial>& history, Objective objective) {
    Problem problem(levels(), std::move(objective), {});
    problem.replicates_inform = false;  // as of a table: no rounds after a search
    return recommend(problem, history);
}

double stated(const Recommendation& result) { return result.gain.scale.stated(result.gain.value); }

}  // namespace

TEST_CASE("differences: figures of any sign are judged, and the gain is in their unit",
          "[decision]") {
    const Recommendation profit =
        concluded_of_differences(levels_measured({-3, -1, 4}, 0.05), {"profit"});
    CHECK(profit.conclusion == Conclusion::recommended);
    CHECK(profit.recommended.number("x") == 2);
    CHECK(stated(profit) == Approx(7).epsilon(0.01));
    CHECK(profit.gain.scale.stated(profit.gain.low) < 7);
    CHECK(profit.gain.scale.stated(profit.gain.low) > 6.5);
    const Recommendation loss = concluded_of_differences(levels_measured({2, -1, 0.5}, 0.02),
                                                         {"loss", Direction::minimize});
    CHECK_FALSE(loss.best.has_value());  // another metric
    const Recommendation least = concluded_of_differences(
        levels_measured({2, -1, 0.5}, 0.02, "loss"), {"loss", Direction::minimize});
    CHECK(least.recommended.number("x") == 1);
    CHECK(stated(least) == Approx(3).epsilon(0.01));
    const Recommendation below =
        concluded_of_differences(levels_measured({-5, -4.2, -7}, 0.01), {"profit"});
    CHECK(below.recommended.number("x") == 1);
    CHECK(stated(below) == Approx(0.8).epsilon(0.01));
}

TEST_CASE("differences: a default of zero is not beaten by a gain of zero", "[decision]") {
    CHECK(concluded_of_differences(levels_measured({0, 0, 0}, 0), {"profit"}).conclusion ==
          Conclusion::keep_default);
    CHECK(concluded_of_differences(levels_measured({0, -1, -2}, 0.01), {"profit"}).conclusion ==
          Conclusion::keep_default);
    const Recommendation better =
        concluded_of_differences(levels_measured({0, 1, 3}, 0.01), {"profit"});
    CHECK(better.conclusion == Conclusion::recommended);
    CHECK(stated(better) == Approx(3).epsilon(0.01));
    // The same noise as signal: nothing is proven.
    CHECK(concluded_of_differences(levels_measured({0, 1, -1}, 2), {"profit"}).conclusion ==
          Conclusion::keep_default);
}

TEST_CASE("differences: means are the figures' own, outliers keep their order and their figure",
          "[decision]") {
    const std::vector<Trial> history = levels_measured({-1, 2, -1e9, 1e7}, 0);
    const Standings standings(history, {"profit"}, {}, history.front().configuration);
    REQUIRE(standings.all().size() == 4);
    CHECK_FALSE(standings.scale().ratios());
    const std::vector<double> means{-1, 2, -1e9, 1e7};
    for (std::size_t i = 0; i < means.size(); ++i)
        CHECK(standings.all()[i].estimate().mean == Approx(means[i]).epsilon(1e-6));
    CHECK(standings.best() == &standings.all()[3]);
    const Estimate& usual = standings.all()[0].estimate();
    CHECK(usual.low() < -1);
    CHECK(usual.high() > -1);
}

TEST_CASE("differences: what is positive is judged by ratios as ever, and a rate of zero is none",
          "[decision]") {
    const std::vector<Trial> positive = levels_measured({1, 2}, 0.01);
    const Standings ratios(positive, {"profit"}, {}, positive.front().configuration);
    CHECK(ratios.scale().ratios());
    const std::vector<Trial> with_zero =
        levels_measured({100, 0, 110}, 0, "goodput_requests_per_second");
    const Standings rates(with_zero, {"goodput_requests_per_second"}, {},
                          with_zero.front().configuration);
    CHECK(rates.scale().ratios());
    CHECK(rates.all()[1].refused == "goodput_requests_per_second = 0 is not positive");
    Decision guarded;
    guarded.never_worse_than = 0.02;
    const std::vector<Trial> negative = levels_measured({1, -2}, 0);
    CHECK(
        Standings(negative, {"profit"}, guarded, negative.front().configuration).all()[1].refused ==
        "profit = -2 is not positive, and `never_worse_than` compares ratios");
}

TEST_CASE("differences: in 200 studies without a difference hardly one recommends a change",
          "[decision]") {
    Rng rng(20261126);
    int changes = 0;
    for (int study = 0; study < 200; ++study) {
        std::vector<Trial> history = levels_measured({0, 0, 0, 0, 0, 0}, 0);
        for (Trial& trial : history) trial.outcome = Measurement{{{"profit", {rng.normal()}}}};
        changes += concluded_of_differences(history, {"profit"}).keep_default ? 0 : 1;
    }
    CHECK(changes <= 25);  // as many as of rates that are compared by ratios
}

TEST_CASE(
    "missing metric: the first measurement without a metric of the objective is refused with the "
    "names that it has") {
    const Problem problem(levels(),
                          Objective("speed", Direction::maximize, {Limit::parse("p99 <= 3")}), {});
    const Exhaustive strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    const auto trial = study.ask();
    const auto told = [&](Metrics metrics) {
        return message_of<UsageError>(
            [&] { study.tell(trial->id, Measurement{std::move(metrics)}); });
    };
    CHECK(told({{"watts", {3}}, {"sped", {5}}}) ==
          "the objective's metric 'speed' is missing; the measurement has: sped, watts. Measure "
          "it, or name another one in the study");
    CHECK(has(
        told({{"speed", {5}}, {"p95", {1}}}),
        "the metric of the limit 'p99 <= 3', 'p99' is missing; the measurement has: p95, speed"));
    CHECK(has(told({}), "the measurement has: nothing"));
    CHECK(has(told({{"speed@a", {5}}, {"speed@b", {-5}}}),
              "Workloads have a common figure only where none is below 0"));
    CHECK_FALSE(journal.trials()[0].told());  // nothing is lost
    CHECK(told({{"speed", {-5}}, {"p99", {1}}}).empty());
    // One that lacks what others had cannot win, and ends nothing.
    const auto next = study.ask();
    study.tell(next->id, Measurement{{{"sped", {5}}}});
    CHECK(Standings(study.trials(), problem.objective, {}, problem.space.default_configuration())
              .all()[1]
              .refused == "the result has no speed");
}

TEST_CASE("missing metric: a run ends with the names at its first trial, which stays open") {
    struct Misspelt : Evaluator {
        Outcome evaluate(const Configuration&, const EvaluationContext&) override {
            return Measurement{{{"sped", {5}}}};
        }
    } evaluator;
    const Problem problem(levels(), {"speed"}, {});
    const Random strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    const Summary summary = study.run(evaluator, {.trials = 10});
    CHECK(summary.reason == StopReason::error);
    CHECK(has(summary.message,
              "the objective's metric 'speed' is missing; the measurement has: sped"));
    CHECK(journal.trials().size() == 1);
    CHECK_FALSE(journal.trials()[0].told());
}
