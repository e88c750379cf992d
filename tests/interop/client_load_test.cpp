// SPDX-License-Identifier: Apache-2.0
// The load of a block that the block does not say: of the client's command and of the lines above
// the title.
#include "support/test.hpp"

#include "servetune/result_file.hpp"

#include <optional>

using namespace servetune;
using namespace servetune::test;

namespace {

std::string plain_block(const std::string& more = "") {
    return "============ Serving Benchmark Result ============\nSuccessful requests: 10\n" + more +
           "Benchmark duration (s): 9.9\n==================================================\n";
}
std::string fenced(const std::string& text) { return "```\n" + text + "```\n"; }

struct LoadsSaid {
    std::vector<std::optional<double>> rates{};
    std::vector<std::optional<double>> in_flight{};
};
LoadsSaid loads_in(const std::string& document) {
    LoadsSaid said;
    for (const PublishedResult& result : read_published(document, {})) {
        said.rates.push_back(result.result.requested_rate_per_second);
        said.in_flight.push_back(result.result.maximum_concurrency);
    }
    return said;
}
using Numbers = std::vector<std::optional<double>>;

}  // namespace

TEST_CASE(
    "client load: the command directly above a block, or what it prints before the title, says the "
    "load") {
    const auto command = [](const std::string& flags) {
        return "vllm bench serve --model m " + flags + " --num-prompts 10\n";
    };
    const LoadsSaid commands =
        loads_in(fenced(command("--request-rate 2") + plain_block()) +
                 fenced(command("--request-rate=4 --max-concurrency '16'") + plain_block()) +
                 fenced(command("--request-rate inf --max-concurrency \\\n  8") + plain_block()));
    CHECK(commands.rates == Numbers{2, 4, std::nullopt});
    CHECK(commands.in_flight == Numbers{std::nullopt, 16, 8});
    const LoadsSaid printed = loads_in(
        fenced("Traffic request rate: 2.0\nMaximum request concurrency: None\n" + plain_block() +
               "Traffic request rate: inf\nMaximum request concurrency: 32\n" + plain_block()));
    CHECK(printed.rates == Numbers{2, std::nullopt});
    CHECK(printed.in_flight == Numbers{std::nullopt, 32});
    CHECK(loads_in("Namespace(seed=0, request_rate=3.0, max_concurrency=7, n=1)\n" + plain_block())
              .rates == Numbers{3});
    CHECK(loads_in("Namespace(seed=0, request_rate=3.0, max_concurrency=7, n=1)\n" + plain_block())
              .in_flight == Numbers{7});
}

TEST_CASE(
    "client load: what the block says of itself counts, and what is no number of one load is "
    "none") {
    CHECK(loads_in("bench --request-rate 4\n" + plain_block("Request rate configured (RPS): 5\n"))
              .rates == Numbers{5});
    CHECK(loads_in("bench --request-rate $RATE\n" + plain_block()).rates == Numbers{std::nullopt});
    CHECK(loads_in("bench --request-rate 2,4\n" + plain_block()).rates == Numbers{std::nullopt});
    CHECK(loads_in("bench --request-rate -1\n" + plain_block()).rates == Numbers{std::nullopt});
    CHECK(loads_in("bench --request-rate-limit 4\n" + plain_block()).rates ==
          Numbers{std::nullopt});
    CHECK(loads_in("bench --request-rate\n").rates.empty());
    // Two commands: nobody knows whose block it is.
    CHECK(loads_in("bench --request-rate 2\nbench --request-rate 4\n" + plain_block()).rates ==
          Numbers{std::nullopt});
    CHECK(loads_in("bench --request-rate 4\nTraffic request rate: 4.0\n" + plain_block()).rates ==
          Numbers{4});
}

TEST_CASE(
    "client load: a command printed once tells no blocks apart, under headings it counts for the "
    "deeper ones") {
    const std::string block = fenced(plain_block());
    CHECK(loads_in("bench --request-rate 4\n" + block + block).rates ==
          Numbers{std::nullopt, std::nullopt});
    CHECK(loads_in("bench --request-rate 4\n" + block + "bench --request-rate 8\n" + block + block)
              .rates == Numbers{4, 8, std::nullopt});
    const std::string four = "## Small\n" + fenced("# start\nbench --request-rate 4\n") +
                             "### One\n" + block + "### Two\n" + block;
    CHECK(
        loads_in(four + "## Large\nbench --request-rate 8\n### One\n" + block + "### Two\n" + block)
            .rates == Numbers{4, 4, 8, 8});
    CHECK(loads_in(four + "## Other\n" + block + "bench --request-rate 8\n" + block).rates ==
          Numbers{4, 4, std::nullopt, 8});
    CHECK(loads_in(four + "### Rate of 8\n" + block + "### Three\n" + block +
                   "bench --request-rate 8\n" + block)
              .rates == Numbers{4, 4, std::nullopt, std::nullopt, 8});
    CHECK(loads_in("## A\nbench --request-rate 4\n## B\n" + block + "### C\n" + block +
                   "bench --request-rate 8\n" + block)
              .rates == Numbers{4, std::nullopt, 8});
}
