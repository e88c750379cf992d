// SPDX-License-Identifier: Apache-2.0
// Trials that a cluster ran on nodes of several kinds: kept with the outcome, and said in the
// report.
#include "report/report_view.hpp"
#include "servetune/journal.hpp"
#include "study/json.hpp"
#include "support/test.hpp"

#include <string>
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
    CHECK(json_of(Outcome(Measurement{})).find("place") == std::string::npos);  // as it was before
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
