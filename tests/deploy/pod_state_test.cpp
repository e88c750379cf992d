// SPDX-License-Identifier: Apache-2.0
// What pods say, and what is concluded: tests/data/kubernetes/pod_states.json has a row for each
// way to wait, run and end. Most were read from a cluster (Kubernetes 1.37.2) and shortened.
#include "deploy/pod_state.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

using namespace servetune;

namespace {

const char* name_of(PodState::Phase phase) {
    return phase == PodState::Phase::waits  ? "waits"
           : phase == PodState::Phase::runs ? "runs"
                                            : "ended";
}

nlohmann::json rows_of_pod_states() {
    std::ifstream stream(SERVETUNE_SOURCE "/tests/data/kubernetes/pod_states.json");
    return nlohmann::json::parse(stream);
}

}  // namespace

TEST_CASE("pod state: every way to wait, run and end is known for what it is") {
    const auto rows = rows_of_pod_states();
    REQUIRE(rows.size() == 49);
    for (const auto& row : rows) {
        INFO(row["what"].get<std::string>());
        const PodState state = pod_state_of(row["pod"], "engine");
        CHECK(std::string(name_of(state.phase)) == row["phase"].get<std::string>());
        CHECK(state.hopeless == row["hopeless"].get<bool>());
        CHECK(state.believed_after_seconds == row["believed_after_seconds"].get<double>());
        CHECK(state.exit_code.has_value() == row.contains("exit_code"));
        if (row.contains("exit_code")) CHECK(state.exit_code == row["exit_code"].get<int>());
        if (row.contains("deleted")) CHECK(state.deleted);
        if (row.contains("why")) {
            INFO(state.why);
            CHECK(state.why.find(row["why"].get<std::string>()) != std::string::npos);
        }
        REQUIRE(state.failure.has_value() == row["failure"].is_string());
        if (!state.failure) continue;
        INFO(state.failure->message);
        CHECK(std::string(name_in(failure_kinds, state.failure->kind)) ==
              row["failure"].get<std::string>());
        for (const auto& words : row["says"])
            CHECK(state.failure->message.find(words.get<std::string>()) != std::string::npos);
    }
}

TEST_CASE(
    "pod state: where it is stands in its status, and nothing is made up of a status that lacks "
    "it") {
    const auto pod = nlohmann::json::parse(
        R"({"metadata": {"name": "p", "deletionTimestamp": null}, "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "reason": null, "podIP": "10.1.2.3", "hostIP": "10.0.0.1",
                       "conditions": [{"type": "Ready", "status": "True"}],
                       "containerStatuses": [{"name": "engine", "state": {"running": {}}}]}})");
    const PodState state = pod_state_of(pod, "engine");
    CHECK(state.node == "n1");
    CHECK(state.pod_ip == "10.1.2.3");
    CHECK(state.host_ip == "10.0.0.1");
    CHECK_FALSE(state.deleted);
    const PodState other = pod_state_of(pod, "main");  // no such container: nothing runs
    CHECK(other.phase == PodState::Phase::waits);
    CHECK(index_of_pod(pod) == 0);
    CHECK(
        index_of_pod(nlohmann::json::parse(
            R"({"metadata": {"annotations": {"batch.kubernetes.io/job-completion-index": "11"}}})")) ==
        11);
    for (
        const char* odd :
        {"null", "[]", "{}", R"({"status": 3})",
         R"({"status": {"conditions": {}, "containerStatuses": "x"}})",
         R"({"spec": null, "status": {"containerStatuses": [null, 1, {"name": "engine", "state": []}]}})"}) {
        const PodState none = pod_state_of(nlohmann::json::parse(odd), "engine");
        CHECK(none.phase == PodState::Phase::waits);
        CHECK_FALSE(none.failure.has_value());
    }
}
