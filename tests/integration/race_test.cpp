// SPDX-License-Identifier: Apache-2.0
// A load test that cannot reach a rate any more: when that is certain, what is recorded of it, and
// what never ends one.
#include "servetune/load_test.hpp"
#include "support/stand_in.hpp"
#include "support/test.hpp"

#include <chrono>

using namespace servetune;
using namespace servetune::test;

namespace {

/// 40 answers of 12 tokens, two at a time, 0.14 s each: 2.8 s in all, 171 tokens a second.
LoadTest slow_load_test(const StandIn& server) {
    LoadTest test;
    test.endpoint = {.url = server.url(), .model = "m"};
    test.workload = {.name = "w",
                     .dataset = {.input_tokens = 30, .output_tokens = 12},
                     .requests = 40,
                     .ignore_eos = true};
    test.workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 2};
    return test;
}

Plan plan_to_race(std::int64_t input, std::int64_t output, bool exact = true) {
    Plan plan;
    plan.requests.resize(10);
    for (PlannedRequest& request : plan.requests) {
        request.input_tokens = input;
        request.output_tokens = output;
    }
    plan.lengths_exact = exact;
    return plan;
}

}  // namespace

TEST_CASE("race: a rate is lost once the planned work cannot make it any more") {
    const Plan plan = plan_to_race(100, 50);
    CHECK(lost_after_seconds({"output_tokens_per_second", 100}, plan) == 5);
    CHECK(lost_after_seconds({"total_tokens_per_second", 100}, plan) == 15);
    CHECK(lost_after_seconds({"input_tokens_per_second", 100}, plan) == 10);
    CHECK(lost_after_seconds({"requests_per_second", 2}, plan) == 5);
    CHECK_FALSE(lost_after_seconds({"input_tokens_per_second", 100},
                                   plan_to_race(100, 50, false)));  // the server may count more
    CHECK(lost_after_seconds({"output_tokens_per_second", 100}, plan_to_race(100, 50, false)) == 5);
    CHECK_FALSE(lost_after_seconds({"time_to_first_token_mean_seconds", 1}, plan));
    CHECK_FALSE(lost_after_seconds({"output_tokens_per_second", 100},
                                   plan_to_race(100, 0)));  // how much work it is, is not known
    CHECK_FALSE(lost_after_seconds({"output_tokens_per_second", 0}, plan));
}

TEST_CASE(
    "race: a load test that is lost ends early, with about the figure that it would have had") {
    const StandIn server({.first = 0.03, .gap = 0.01});
    const LoadTestResult whole = run_load_test(slow_load_test(server));
    REQUIRE_FALSE(whole.given_up);
    const double rate = whole.statistics.result.output_tokens_per_second.value();
    LoadTest test = slow_load_test(server);
    test.to_reach = RateToReach{"output_tokens_per_second", rate * 3};
    const LoadTestResult lost = run_load_test(test);
    REQUIRE(lost.given_up);
    CHECK(lost.given_up->seconds < 0.75 * whole.run.duration_seconds);
    CHECK(std::abs(lost.given_up->value - rate) < 3 * lost.given_up->standard_error);
    CHECK(lost.given_up->saved_seconds > 0.25 * whole.run.duration_seconds);

    test.to_reach = RateToReach{"output_tokens_per_second", rate * 0.8};  // it will make that
    CHECK_FALSE(run_load_test(test).given_up);
}

TEST_CASE("race: a load test that the user stops is stopped, not lost") {
    const StandIn server({.first = 0.03, .gap = 0.01});
    LoadTest test = slow_load_test(server);
    test.to_reach = RateToReach{"output_tokens_per_second", 1e6};  // lost at once
    std::stop_source user;
    test.options.progress = [&user](const LoadProgress& /*progress*/) { user.request_stop(); };
    const LoadTestResult result = run_load_test(test, user.get_token());
    CHECK(result.run.stopped);
    CHECK_FALSE(result.given_up);
}
