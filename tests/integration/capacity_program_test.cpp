// SPDX-License-Identifier: Apache-2.0
// `autotune capacity` from outside, and studies that look for the largest load of each
// configuration.
#include "base/files.hpp"
#include "support/autotune.hpp"
#include "support/deployed_study.hpp"
#include "support/simengine.hpp"
#include "support/stand_in.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

Ran capacity_of(const std::string& url, const TemporaryFolder& folder,
                std::vector<std::string> more) {
    std::vector<std::string> words{"capacity",     "--url",      url,  "--workload",
                                   "random:30x12", "--requests", "40", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return autotune(words, folder.path());
}

}  // namespace

TEST_CASE(
    "capacity: a server that never waits has no edge, one that is too slow fails at the lowest "
    "load") {
    const StandIn server({.first = 0.02, .gap = 0.001});
    const TemporaryFolder folder;
    const Ran no_edge = capacity_of(server.url(), folder, {"--limit", "ttft_p95 <= 30s", "--json"});
    INFO(no_edge.err);
    CHECK(no_edge.code == 6);
    CHECK(Json::parse(no_edge.out).at("end") == "edge_not_reached");
    CHECK(Json::parse(no_edge.out).at("points").size() == 1);

    const Ran too_slow = capacity_of(
        server.url(), folder,
        {"--limit", "ttft_p95 <= 1ms", "--concurrency", "--to", "4", "--save", "c.json"});
    CHECK(too_slow.code == 1);
    CHECK(has(too_slow.out,
              "No largest load: the lowest load that may be tried, 1 requests in "
              "flight, breaks a limit\n"
              "under time_to_first_token_p95_seconds <= 1 ms"));
    CHECK(Json::parse(read_file(folder.path() / "c.json")).at("end") == "fails_at_lowest");
}

TEST_CASE("capacity: a sweep measures the loads that it is given, as a table and as JSON") {
    const StandIn server({.first = 0.004, .gap = 0.001});
    const TemporaryFolder folder;
    const Ran table = capacity_of(
        server.url(), folder, {"--concurrency", "--sweep", "8,1,2", "--limit", "ttft_p95 < 8ms"});
    INFO(table.err);
    CHECK(table.code == 0);
    CHECK(has(table.out, "tok/s/user"));
    CHECK(table.out.find("\n           1 ") < table.out.find("\n           2 "));
    CHECK(table.out.find("\n           2 ") < table.out.find("\n           8 "));
    const Json json =
        Json::parse(capacity_of(server.url(), folder, {"--sweep", "20,40", "--json"}).out);
    CHECK(json.at("load") == "requests_per_second");
    REQUIRE(json.at("points").size() == 2);
    CHECK(json.at("points")[0].at("load") == 20);
    CHECK(json.at("points")[1].at("metrics").at("requested_rate_per_second") == 40);
}

TEST_CASE("capacity: a load whose result is unsound is no answer") {
    const StandIn server({.first = 0.002, .gap = 0.001, .faults = {"abort=2", "every=3"}});
    const TemporaryFolder folder;
    const std::vector<std::string> half{"--limit", "success_ratio >= 0.5", "--concurrency", "--to",
                                        "4"};
    const Ran text = capacity_of(server.url(), folder, half);
    INFO(text.out << text.err);
    CHECK(text.code == 1);
    CHECK(text.out.find("No largest load: the result at 4 requests in flight is unsound\n") == 0);
    CHECK(has(text.out, "\n4, unsound:\n"));
    CHECK(has(text.out, "\n  complete: "));
    auto as_json = half;
    as_json.emplace_back("--json");
    CHECK(Json::parse(capacity_of(server.url(), folder, as_json).out).at("verdict") == "unsound");
}

TEST_CASE(
    "capacity: the largest rate of an engine that queues lies between two loads that were "
    "measured") {
    SimEngine engine(SIMENGINE_PROGRAM,
                     {"--start-scale", "1000", "--time-scale", "4", "vllm", "serve",
                      "Qwen/Qwen3-8B", "--port", "0", "--max-num-seqs", "4"});
    REQUIRE(engine.wait_until_ready());
    const TemporaryFolder folder;
    const Ran run = capacity_of(engine.url(), folder,
                                {"--limit", "latency_p95 <= 120ms", "--json", "--ignore-eos"});
    INFO(run.err);
    const Json json = Json::parse(run.out);
    INFO(run.out);
    REQUIRE(json.at("end") == "found");
    CHECK(json.at("points").size() <= 6);
    CHECK(json.at("keeps_at") <= json.at("largest_load"));
    CHECK(json.at("largest_load") <= json.at("breaks_at"));
    for (const Json& point : json.at("points"))
        if (point.at("load") == json.at("keeps_at"))
            CHECK(point.at("metrics").at("latency_p95_seconds") <= 0.12);
}

TEST_CASE("capacity: a deployed study finds the load of each configuration on one start") {
    DeployedStudy::Text text;
    text.workload =
        "{kind: random, input_tokens: 64, output_tokens: 48}, requests: 24, arrival: "
        "{largest_rate: {}}";
    text.objective = "{maximize: request_rate, limits: [\"ttft_p95 <= 150ms\"]}";
    text.deploy =
        "ready_within: 3s, stop_within: 1s, stall_timeout: 5s, trial_within: 60s, warm_up: 1";
    text.more = "budget: {trials: 3}\n";
    const DeployedStudy study(text);
    const Ran run = study.run();
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(study.engines().size() == study.trials().size());
    for (const Trial& trial : study.trials()) {
        const Measurement* measured = trial.measurement();
        REQUIRE(measured != nullptr);
        CHECK(measured->metrics.at("sustained_requests_per_second").value > 0);
        CHECK(measured->metrics.contains("goodput_requests_per_second"));
    }
    CHECK(has(run.err, "the largest load is "));
    CHECK(study.left().empty());
}
