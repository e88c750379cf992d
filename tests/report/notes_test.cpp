// SPDX-License-Identifier: Apache-2.0
// What reports say beside the figures: nodes of several kinds, and where the time went.
#include "report/report_view.hpp"
#include "study/json.hpp"
#include "support/test.hpp"

#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

Trial trial_on(std::uint64_t id, const std::string& node, const std::string& devices) {
    Trial trial;
    trial.id = id;
    Measurement measured;
    measured.metrics["total_tokens_per_second"] = {100.0};
    measured.place = {{"node", node}, {"node devices", devices}};
    trial.outcome = measured;
    return trial;
}

}  // namespace

TEST_CASE("places: the node of a trial is kept with its outcome") {
    Measurement measured;
    measured.metrics["m"] = {1.0};
    measured.place = {{"node", "n1"}, {"node type", "p5"}};
    CHECK(place_of(outcome_from_json(json_of(Outcome(measured)))) == measured.place);
    const Failure failed{
        .kind = FailureKind::out_of_memory, .message = "m", .place = {{"node", "n2"}}};
    CHECK(outcome_from_json(json_of(Outcome(failed))) == Outcome(failed));
    CHECK_FALSE(has(json_of(Outcome(Measurement{})), "place"));  // as it was before
}

TEST_CASE("places: nodes of several kinds are said, nodes of several names are not") {
    const std::vector<Trial> alike{trial_on(0, "n1", "H100"), trial_on(1, "n2", "H100")};
    CHECK(environment_changes(alike).empty());
    const std::vector<Trial> mixed{trial_on(0, "n1", "H100"), trial_on(1, "n2", "A100"),
                                   trial_on(2, "n1", "H100")};
    CHECK(environment_changes(mixed) ==
          std::vector<std::string>{
              "trials ran on nodes of several kinds, keep to one by the template's "
              "nodeSelector; node devices: A100 (1 trial), H100 (2 trials)"});
}

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

TEST_CASE("time spent: starts, warm-up and load tests, and what early ends saved") {
    std::vector<Trial> trials{timed_trial(0, 90, 20), timed_trial(1, 60, 20)};
    for (Trial& trial : trials) trial.started_at = 0, trial.told_at = 120;
    CHECK(time_spent_in(trials).text() == "4.0 min: starts 2.5 min, warm-up 20 s, load tests 40 s");
    trials.push_back(timed_trial(2, 60, 5, 45));
    CHECK(time_spent_in(trials).text().ends_with("load tests 45 s; early ends saved 45 s"));
    trials.push_back({4, {}});
    trials.back().outcome = Failure{FailureKind::hung, "it hung"};
    trials.back().started_at = 1000;
    trials.back().told_at = 1060;
    CHECK(time_spent_in(trials).trials == 300);  // a failed one has no parts
    CHECK(time_spent_in({}).text() == "0 s");
}
