// SPDX-License-Identifier: Apache-2.0
// simengine in both roles behind the tests' router, each a process of its own.
#include "support/simengine.hpp"
#include "support/simengine_commands.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

TEST_CASE("simengine in roles: answers are those of one engine, and pass both") {
    const std::vector<Words> decoders{
        joined(vllm, {"--kv-transfer-config",
                      R"({"kv_connector":"NixlConnector","kv_role":"kv_consumer"})"}),
        joined(sglang, {"--enable-metrics", "--disaggregation-mode", "decode"})};
    for (const Words& decoder : decoders) {
        INFO(decoder.front());
        SimEngine prefill(program, fast(decoder.front() == "vllm" ? vllm : sglang));
        SimEngine decode(program, fast(decoder));
        REQUIRE(prefill.wait_until_ready());
        REQUIRE(decode.wait_until_ready());
        SimEngine router("/usr/bin/env", {"python3", SERVETUNE_SOURCE "/tests/support/router.py",
                                          "--pd-disaggregation", "--prefill", prefill.url(),
                                          "--decode", decode.url(), "--port", "0"});
        REQUIRE(router.wait_until_ready());

        const Json wanted =
            Json::parse(prefill.post("/v1/chat/completions", chat_body(40).dump()).body);
        const HttpAnswer answer = router.post("/v1/chat/completions", chat_body(40).dump());
        INFO(answer.body);
        REQUIRE(answer.status == 200);
        const Json got = Json::parse(answer.body);
        CHECK(got["choices"] == wanted["choices"]);
        CHECK(got["usage"] == wanted["usage"]);

        CHECK(succeeded(load(router, 24, 20, 8, {.ignore_eos = true})) == 24);
        const auto counted = [](const SimEngine& engine) {
            return Json::parse(engine.get("/simengine").body).at("requests").get<int>();
        };
        CHECK(counted(prefill) == 26);  // one alone
        CHECK(counted(decode) == 25);
        // The decode engine counts all tokens, as engines do.
        CHECK(has(decode.get("/metrics").body, "} " + std::to_string(40 + 24 * 20) + "\n"));

        prefill.process().signal(SIGKILL);
        (void)prefill.process().wait_at_most(std::chrono::seconds(5));
        CHECK(router.post("/v1/chat/completions", chat_body(4).dump()).status == 500);
    }
}
