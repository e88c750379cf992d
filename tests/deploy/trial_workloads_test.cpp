// SPDX-License-Identifier: Apache-2.0
// The loads that one trial sends.
#include "deploy/trial_workloads.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/error.hpp"
#include "servetune/trial.hpp"
#include "support/test.hpp"

using namespace servetune;

namespace {

Workload chat_load() {
    Workload workload;
    workload.name = "chat";
    workload.dataset.input_tokens = 100;
    workload.dataset.output_tokens = 20;
    workload.dataset.range_ratio = 0.5;
    workload.requests = 200;
    workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 16};
    return workload;
}

std::vector<Workload> stress_loads(const Workload& workload) {
    return workloads_of_trial({{workload}}, std::string(stress_workload), {});
}

}  // namespace

TEST_CASE("stress: the longest prompts at all places, a burst after an idle time, and a soak") {
    const std::vector<Workload> loads = stress_loads(chat_load());
    REQUIRE(loads.size() == 3);
    CHECK(loads[0].name == "longest prompts of chat");
    CHECK(loads[0].longest == 16);
    CHECK(loads[1].name == "burst of chat");
    CHECK(loads[1].after_idle);
    CHECK(loads[1].arrival.in_flight == 48);
    CHECK(loads[1].requests == 48);
    CHECK(loads[2].name == "soak of chat");
    CHECK(loads[2].requests == 400);
    CHECK(loads[2].arrival.in_flight == 16);

    Workload paced = chat_load();
    paced.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = 4};
    CHECK(stress_loads(paced)[0].arrival.in_flight == 64);  // nobody knows how many are in flight
    CHECK(stress_loads(paced)[1].arrival.requests_per_second == 12);
    paced.arrival = {.kind = Arrival::Kind::largest_rate};
    CHECK(stress_loads(paced)[2].arrival.kind == Arrival::Kind::concurrency);
}

TEST_CASE("stress: of a plan the longest prompts stay, with answers as long as fit") {
    Workload workload = chat_load();
    const Plan all = plan_requests(workload);
    std::vector<std::int64_t> lengths;
    std::int64_t answer = 0, longest = 0;
    for (const PlannedRequest& one : all.requests) {
        lengths.push_back(one.input_tokens);
        answer = std::max(answer, one.output_tokens);
        longest = std::max(longest, one.input_tokens + one.output_tokens);
    }
    std::sort(lengths.rbegin(), lengths.rend());
    workload.longest = 16;
    const Plan plan = plan_requests(workload);
    REQUIRE(plan.requests.size() == 16);
    for (std::size_t i = 0; i < 16; ++i) {
        CHECK(plan.requests[i].input_tokens == lengths[i]);
        const std::int64_t mine = plan.requests[i].output_tokens;
        CHECK((mine == answer || mine + lengths[i] == longest));
    }
}

TEST_CASE("stress: of a file the longest prompts, also behind what a trial sends of it") {
    const TemporaryFolder folder;
    Workload workload = chat_load();
    workload.requests = 2;
    workload.dataset = {};
    workload.dataset.kind = Dataset::Kind::trace;
    workload.dataset.path =
        folder.write("t.csv", "input_tokens,output_tokens\n50,9\n60,8\n40,30\n300,7\n").string();
    CHECK(plan_requests(workload).requests.back().input_tokens == 60);
    workload.longest = 16;
    // The longest request is of 307 tokens; a trial's two have 127 together.
    const Plan plan = plan_requests(workload);
    REQUIRE(plan.requests.size() == 1);
    CHECK(plan.requests[0].input_tokens == 300);
    CHECK(plan.requests[0].output_tokens == 7);

    workload.dataset.kind = Dataset::Kind::prompts;
    workload.dataset.path =
        folder
            .write("p.jsonl", "{\"prompt\": \"a b\"}\n{\"prompt\": \"c d\"}\n{\"prompt\": \"" +
                                  std::string(900, 'e') + "\"}\n")
            .string();
    workload.dataset.output_tokens = 5;
    CHECK(plan_requests(workload).requests.front().input_tokens > 50);
}

TEST_CASE("a trial's workloads: those of the search, busiest first, or the one that is asked") {
    Workload busy = chat_load();
    busy.name = "busy";
    busy.arrival.in_flight = 64;
    Workload reported = chat_load();
    reported.name = "reported";
    const StudyWorkloads workloads{{chat_load(), busy}, {reported}};
    CHECK(workloads_of_trial(workloads, "", {}).front().name == "busy");
    CHECK(workloads_of_trial(workloads, "reported", {}).size() == 1);
    CHECK_THROWS_AS(workloads_of_trial(workloads, "nobody", {}), UsageError);
    CHECK(workloads_of_trial(workloads, std::string(stress_workload), {}).size() == 3 + 2);
}
