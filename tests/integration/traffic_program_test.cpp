// SPDX-License-Identifier: Apache-2.0
// `autotune import LOG --write-workload FILE` from outside, and the traffic sent again.
#include "support/autotune.hpp"
#include "support/records.hpp"
#include "support/stand_in.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

std::string log_of_requests(std::size_t count) {
    std::string log;
    for (std::size_t i = 0; i < count; ++i)
        log += "{\"timestamp\": " + std::to_string(1795859600 + 0.1 * double(i)) +
               ", \"prompt_tokens\": " + std::to_string(20 + i) +
               ", \"completion_tokens\": " + std::to_string(3 + i % 5) + "}\n";
    return log;
}

}  // namespace

TEST_CASE("import: a log becomes a workload, which is sent at its times and twice as fast") {
    const TemporaryFolder folder;
    folder.write("log.jsonl", log_of_requests(12));
    const Ran made =
        autotune({"import", "log.jsonl", "--write-workload", "traffic.yaml"}, folder.path());
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK(made.out.starts_with("12 requests in 1 s (from 2026-11-28 09:53)\n"));
    CHECK(has(made.err, "traffic.yaml and traffic.jsonl are written"));
    const Ran first = autotune({"init", "--yes", "--engine", "vllm", "--model", "Qwen/Qwen3-8B",
                                "--traffic", "traffic.yaml"},
                               folder.path());
    INFO(first.err);
    CHECK(first.code == 0);
    CHECK(has(read_file(folder.path() / "study.yaml"), "workloads: [{use: traffic.yaml}]"));
    folder.write("fast.yaml", replaced(read_file(folder.path() / "traffic.yaml"),
                                       "{rate: timestamps}", "{rate: timestamps, speed: 2}"));
    const StandIn server({.first = 0.003, .gap = 0.001});
    double last[2] = {0, 0};
    for (const int speed : {1, 2}) {
        const std::string records = "r" + std::to_string(speed) + ".gz";
        const Ran sent = autotune({"bench", "--url", server.url(), "--quiet", "--workload",
                                   speed == 1 ? "traffic.yaml" : "fast.yaml", "--records", records},
                                  folder.path());
        INFO(sent.err + sent.out);
        CHECK(sent.code == 0);
        const auto rows = read_records(folder.path() / records);
        REQUIRE(rows.size() == 12);
        last[speed - 1] = rows[11].scheduled - rows[0].scheduled;
        CHECK(rows[4].output_tokens == 7);
        CHECK(rows[4].input_tokens == 24);
    }
    CHECK(last[0] == Approx(1.1).margin(0.01));
    CHECK(last[1] == Approx(0.55).margin(0.01));
}
