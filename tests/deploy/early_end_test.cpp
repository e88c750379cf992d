// SPDX-License-Identifier: Apache-2.0
// When a trial of several workloads need not go on, and what it is then taken to have reached.
#include "deploy/early_end.hpp"
#include "deploy/trial_workloads.hpp"
#include "support/test.hpp"

#include <cmath>

using namespace servetune;

namespace {

const std::string goal_rate = "output_tokens_per_second";
const std::string first_token = "time_to_first_token_mean_seconds";

Workload at_concurrency(const std::string& name, std::int64_t in_flight, double weight = 1) {
    Workload result{.name = name};
    result.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = in_flight};
    result.weight = weight;
    return result;
}

const std::vector<Workload> two_loads{at_concurrency("many", 64), at_concurrency("few", 4)};

/// The best reaches 1000 on the first and 100 on the second, so sqrt(100000).
Incumbent best_of_two() {
    return {{goal_rate, Direction::maximize},
            std::sqrt(1000.0 * 100),
            {{"many", {1000, 20}}, {"few", {100, 40}}}};
}

std::vector<WorkloadMetrics> measured_first(double rate, double ttft = 0.1) {
    return {{"many", 1, {{goal_rate, {rate}}, {first_token, {ttft}}}}};
}

}  // namespace

TEST_CASE(
    "early end: workloads come busiest first, those whose pace or load others set come last") {
    Workload all_at_once{.name = "all"};
    all_at_once.requests = 100;
    Workload paced{.name = "paced"};
    paced.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = 50};
    Workload looked_for{.name = "largest"};
    looked_for.arrival.kind = Arrival::Kind::largest_rate;
    const std::vector<Workload> order{looked_for,
                                      paced,
                                      at_concurrency("few", 4),
                                      at_concurrency("other", 4),
                                      all_at_once,
                                      at_concurrency("many", 64)};
    std::string names;
    for (const Workload& one : workloads_of_trial({order}, "", {})) names += one.name + " ";
    CHECK(names == "all many few other paced largest ");
}

TEST_CASE(
    "early end: the rest is left out where even 20 % more than any had there would not be enough") {
    const EarlyEnd early(best_of_two(), 0.2, {}, two_loads);
    // sqrt(rate x 120) = sqrt(100000) / 1.2 at a rate of 578.7.
    CHECK(early.left_out(measured_first(570)).has_value());
    CHECK_FALSE(early.left_out(measured_first(590)).has_value());
    CHECK_FALSE(early.left_out(measured_first(570)).value().by_limit);
    CHECK(early.rate_to_reach({}).value().least == Approx(100000 / 1.44 / 120).epsilon(1e-9));
    CHECK(early.rate_to_reach(measured_first(900)).value().least ==
          Approx(100000 / 1.44 / 900).epsilon(1e-9));
    CHECK(early.saved_seconds(1) == 40);

    const Metrics whole = early.whole(measured_first(500));
    CHECK(whole.at(goal_rate).value ==
          Approx(std::sqrt(500.0 * 50)).epsilon(1e-9));  // half of the best on both
    CHECK(whole.at(goal_rate).standard_error.value() ==
          Approx(whole.at(goal_rate).value * 0.075).epsilon(1e-9));
    CHECK(whole.at(first_token + "@many").value == 0.1);
    CHECK_FALSE(whole.contains(first_token));

    CHECK_FALSE(EarlyEnd(std::nullopt, 0.2, {}, two_loads).left_out(measured_first(1)).has_value());
    CHECK_FALSE(EarlyEnd(best_of_two(), 0, {}, two_loads).left_out(measured_first(1)).has_value());
    Incumbent unknown = best_of_two();
    unknown.of_workloads.erase("few");
    CHECK_FALSE(EarlyEnd(unknown, 0.2, {}, two_loads).left_out(measured_first(1)).has_value());
    Incumbent of_one = best_of_two();
    of_one.goal.metric += "@few";
    CHECK_FALSE(EarlyEnd(of_one, 0.2, {}, two_loads).left_out(measured_first(1)).has_value());
}

TEST_CASE(
    "early end: a time to minimize is judged the other way round, and no load test is raced") {
    const Incumbent best{
        {first_token, Direction::minimize}, 1, {{"many", {2, 20}}, {"few", {0.5, 40}}}};
    const EarlyEnd early(best, 0.2, {}, two_loads);
    // sqrt(time x 0.5 / 1.2) = 1.2 at a time of 3.456.
    CHECK(early.left_out(measured_first(1, 3.5)).has_value());
    CHECK_FALSE(early.left_out(measured_first(1, 3.4)).has_value());
    CHECK_FALSE(early.rate_to_reach({}).has_value());
}

TEST_CASE(
    "early end: a limit that is broken by more than noise ends a trial, on the workloads that it "
    "is for") {
    const auto cut = [](const std::string& limit, double ttft) {
        const auto found = EarlyEnd(best_of_two(), 0.2, {Limit::parse(limit)}, two_loads)
                               .left_out(measured_first(1000, ttft));
        return found && found->by_limit;
    };
    CHECK(cut(first_token + " <= 1", 1.21));
    CHECK_FALSE(cut(first_token + " <= 1", 1.19));
    CHECK(cut(first_token + "@many <= 1", 1.21));
    CHECK_FALSE(cut(first_token + "@few <= 1", 5));
    CHECK(cut(goal_rate + " >= 1300", 0.1));
    CHECK_FALSE(cut(goal_rate + " >= 1100", 0.1));
}
