// SPDX-License-Identifier: Apache-2.0
#include "report/report_view.hpp"
#include "support/test.hpp"

using namespace servetune;

namespace {

Trial timed_trial(std::uint64_t id, double start, double load, std::optional<double> saved = {}) {
    Metrics metrics{{"trial_start_seconds", {start}},
                    {"trial_warm_up_seconds", {10}},
                    {"trial_measure_seconds", {load}}};
    if (saved) metrics["trial_saved_seconds"] = {*saved};
    Trial trial{id, {}};
    trial.outcome = Measurement{std::move(metrics), {}};
    return trial;
}

}  // namespace

TEST_CASE("time spent: starts, warm-up and load tests, and what was saved by what") {
    std::vector<Trial> trials{timed_trial(0, 90, 20), timed_trial(1, 60, 20)};
    CHECK(time_spent_in(trials).text() == "starts 2.5 min, warm-up 20 s, load tests 40 s");
    trials.push_back(timed_trial(2, 60, 5, 45));
    trials.push_back(
        timed_trial(3, 0, 20));  // another load of the server that is there: a start of 70 s saved
    CHECK(time_spent_in(trials).text() ==
          "starts 3.5 min, warm-up 40 s, load tests 65 s; saved about 115 s: 1 trial ended early, "
          "1 on a server that was there");
    trials.push_back({4, {}});
    trials.back().outcome = Failure{FailureKind::hung, "it hung"};
    CHECK(time_spent_in(trials).text().starts_with("starts 3.5 min"));
    CHECK(time_spent_in({}).text().empty());
}

TEST_CASE(
    "time spent: what is no start, warm-up or load test is the rest, so that the parts make up the "
    "whole") {
    std::vector<Trial> trials{timed_trial(0, 90, 20)};
    trials[0].started_at = 1000;
    trials[0].told_at = 1125;
    CHECK(time_spent_in(trials).text() ==
          "starts 90 s, warm-up 10 s, load tests 20 s, the rest 5 s");
    trials.push_back({1, {}});  // a failed one has no parts
    trials.back().outcome = Failure{FailureKind::hung, "it hung"};
    trials.back().started_at = 1125;
    trials.back().told_at = 1185;
    CHECK(time_spent_in(trials).trials == 185);
    CHECK(time_spent_in(trials).text() ==
          "starts 90 s, warm-up 10 s, load tests 20 s, the rest 65 s");
}
