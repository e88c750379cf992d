// SPDX-License-Identifier: Apache-2.0
// simengine in both roles behind its router, each a process of its own.
#include "support/simengine.hpp"
#include "support/simengine_commands.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "servetune/detail/host/port.hpp"
#include "servetune/detail/load/load_generator.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

/// Engines of both roles and their router. The way is that of vLLM's router or of SGLang's.
class Apart {
public:
    Apart(bool sglang_way, std::size_t prefills, std::size_t decodes,
          const Words& prefill_options = {}, const Words& decode_options = {}) {
        Words router = sglang_way ? Words{"python3", "-m", "sglang_router.launch_router",
                                          "--pd-disaggregation"}
                                  : Words{"vllm-router", "--vllm-pd-disaggregation"};
        for (std::size_t i = 0; i < prefills; ++i) {
            const std::string side = std::to_string(sides_.emplace_back(1).first());
            const Words role =
                sglang_way ? Words{"--enable-metrics", "--disaggregation-mode", "prefill",
                                   "--disaggregation-bootstrap-port", side}
                           : Words{"--kv-transfer-config",
                                   R"({"kv_connector":"NixlConnector","kv_role":"kv_producer"})"};
            start(prefill,
                  {"VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1", "VLLM_NIXL_SIDE_CHANNEL_PORT=" + side},
                  fast(joined(sglang_way ? sglang : vllm, role), prefill_options));
            if (prefill.back()->wait_until_ready())
                router = joined(router, {"--prefill", prefill.back()->url()});
            if (sglang_way) router.push_back(side);
        }
        for (std::size_t i = 0; i < decodes; ++i) {
            const Words role =
                sglang_way ? Words{"--enable-metrics", "--disaggregation-mode", "decode"}
                           : Words{"--kv-transfer-config",
                                   R"({"kv_connector":"NixlConnector","kv_role":"kv_consumer"})"};
            start(decode, {}, fast(joined(sglang_way ? sglang : vllm, role), decode_options));
            if (decode.back()->wait_until_ready())
                router = joined(router, {"--decode", decode.back()->url()});
        }
        front = std::make_unique<SimEngine>(program, joined(router, {"--port", "0"}));
        ready = front->wait_until_ready();
    }

    std::vector<std::unique_ptr<SimEngine>> prefill{}, decode{};
    std::unique_ptr<SimEngine> front{};
    bool ready = false;

private:
    static void start(std::vector<std::unique_ptr<SimEngine>>& where, Words environment,
                      const Words& words) {
        environment.push_back(program);
        where.push_back(std::make_unique<SimEngine>("/usr/bin/env", joined(environment, words)));
    }
    std::deque<ReservedPorts> sides_{};
};

std::size_t finished_on(const SimEngine& engine) {
    return Json::parse(engine.get("/simengine").body).at("requests").get<std::size_t>();
}

/// A body without the sizes of its HTTP chunks, which may break anywhere.
std::string without_chunks(const std::string& body) {
    std::string result;
    for (std::size_t at = 0; at < body.size();) {
        const std::size_t line_end = body.find("\r\n", at);
        const std::size_t size = line_end == std::string::npos
                                     ? 0
                                     : std::stoul(body.substr(at, line_end - at), nullptr, 16);
        if (size == 0) break;
        result += body.substr(line_end + 2, size);
        at = line_end + 2 + size + 2;
    }
    return result;
}

}  // namespace

TEST_CASE(
    "simengine in roles: answers are those of one engine, whole and streamed, in both routers' "
    "ways") {
    for (const bool sglang_way : {false, true}) {
        INFO("SGLang's way: " << sglang_way);
        SimEngine whole(program, fast(sglang_way ? sglang : vllm));
        REQUIRE(whole.wait_until_ready());
        const Apart apart(sglang_way, 1, 1);
        REQUIRE(apart.ready);
        CHECK(Json::parse(apart.front->get("/v1/models").body)["data"][0]["id"] == model);

        const Json wanted =
            Json::parse(whole.post("/v1/chat/completions", chat_body(40).dump()).body);
        const HttpAnswer answer = apart.front->post("/v1/chat/completions", chat_body(40).dump());
        INFO(answer.body);
        REQUIRE(answer.status == 200);
        const Json got = Json::parse(answer.body);
        CHECK(got["choices"] == wanted["choices"]);
        CHECK(got["usage"] == wanted["usage"]);

        Json streamed = chat_body(40);
        streamed["stream"] = true;
        streamed["stream_options"] = {{"include_usage", true}};
        const std::string stream =
            without_chunks(apart.front->post("/v1/chat/completions", streamed.dump()).body);
        std::string text;
        std::size_t events = 0;
        for (std::size_t at = stream.find("data: {"); at != std::string::npos;
             at = stream.find("data: {", at + 1)) {
            const Json event = Json::parse(stream.substr(at + 6, stream.find('\n', at) - at - 6));
            ++events;
            if (event["choices"].empty()) CHECK(event["usage"] == wanted["usage"]);
            else text += event["choices"][0]["delta"].value("content", "");
        }
        CHECK(text == wanted["choices"][0]["message"]["content"]);
        CHECK(events >= 42);  // the role, an event for each token, and the usage
        CHECK(stream.find("data: [DONE]") != std::string::npos);

        // Each request has passed both; the decode engine counts all tokens, as engines do.
        CHECK(finished_on(*apart.prefill.front()) == 2);
        CHECK(finished_on(*apart.decode.front()) == 2);
        const std::string metrics = apart.decode.front()->get("/metrics").body;
        CHECK(metrics.find("generation_tokens_total{") != std::string::npos);
        CHECK(metrics.find("} 80\n") != std::string::npos);
    }
}

TEST_CASE("simengine in roles: a load is spread over the engines of each role") {
    for (const bool sglang_way : {false, true}) {
        INFO("SGLang's way: " << sglang_way);
        const Apart apart(sglang_way, 2, 2);
        REQUIRE(apart.ready);
        CHECK(succeeded(load(*apart.front, 64, 20, 8)) == 64);
        for (const auto* role : {&apart.prefill, &apart.decode}) {
            CHECK(finished_on(*role->front()) + finished_on(*role->back()) == 64);
            CHECK(finished_on(*role->front()) >= 16);
            CHECK(finished_on(*role->back()) >= 16);
        }
    }
}

TEST_CASE(
    "simengine in roles: engines that are gone fail requests, and one that dies breaks its streams "
    "off") {
    for (const bool sglang_way : {false, true}) {
        INFO("SGLang's way: " << sglang_way);
        const Apart no_prefill(sglang_way, 1, 1, {"--fault", "die_at_requests=2"});
        REQUIRE(no_prefill.ready);
        CHECK(no_prefill.front->post("/v1/chat/completions", chat_body(4).dump()).status == 200);
        const HttpAnswer failed =
            no_prefill.front->post("/v1/chat/completions", chat_body(4).dump());
        CHECK(failed.status == 500);
        CHECK(failed.body.find("Prefill request failed: ") != std::string::npos);
        CHECK(no_prefill.prefill.front()->process().wait_at_most(std::chrono::seconds(5)) == 1);
        CHECK(no_prefill.front->post("/v1/chat/completions", chat_body(4).dump()).status == 500);

        const Apart no_decode(sglang_way, 1, 1, {}, {"--fault", "die_at_tokens=30"});
        REQUIRE(no_decode.ready);
        const LoadRun broken = load(*no_decode.front, 3, 200, 3);
        CHECK(succeeded(broken) == 0);
        CHECK(std::any_of(broken.records.begin(), broken.records.end(),
                          [](const RequestRecord& one) { return one.first_token.has_value(); }));
        CHECK(no_decode.front->get("/health").status == 200);
        CHECK(no_decode.front->post("/v1/chat/completions", chat_body(4).dump())
                  .body.find("Decode request failed: ") != std::string::npos);
    }
}

TEST_CASE("simengine in roles: what an engine refuses is told, with its words") {
    const Apart vllm_way(false, 1, 1);
    REQUIRE(vllm_way.ready);
    Json other = chat_body(4);
    other["model"] = "another";
    const HttpAnswer refused = vllm_way.front->post("/v1/chat/completions", other.dump());
    CHECK(refused.status == 500);
    CHECK(refused.body.find("Prefill server error 404: ") != std::string::npos);
    CHECK(refused.body.find("The model `another` does not exist.") != std::string::npos);
    CHECK(vllm_way.front->post("/v1/chat/completions", "[]").status == 400);
    // An engine of vLLM goes on serving what asks for no part of its work.
    CHECK(vllm_way.prefill.front()->post("/v1/chat/completions", chat_body(4).dump()).status ==
          200);

    const Apart sglang_way(true, 1, 1);
    REQUIRE(sglang_way.ready);
    for (const auto* role : {&sglang_way.prefill, &sglang_way.decode}) {
        const HttpAnswer alone = role->front()->post("/v1/chat/completions", chat_body(4).dump());
        CHECK(alone.status == 400);
        CHECK(alone.body.find("bootstrap room") != std::string::npos);
    }
}

TEST_CASE(
    "simengine in roles: two engines cannot have one side channel, and commands that cannot be are "
    "refused") {
    const ReservedPorts side(1);
    const Words engine =
        fast(joined(sglang, {"--disaggregation-mode", "prefill", "--disaggregation-bootstrap-port",
                             std::to_string(side.first())}));
    SimEngine first(program, engine);
    REQUIRE(first.wait_until_ready());
    const EndedProgram second = ended(engine);
    CHECK(second.code == 1);
    CHECK(second.err.find("address already in use") != std::string::npos);

    CHECK(ended(fast(joined(vllm, {"--kv-transfer-config", R"({"kv_role":"kv_all"})"}))).code == 2);
    const auto router = [](const Words& words) { return ended(joined({"vllm-router"}, words)); };
    CHECK(router({"--vllm-pd-disaggregation", "--decode", "http://127.0.0.1:1"})
              .err.find("at least one --prefill") != std::string::npos);
    CHECK(router({"--prefill", "http://127.0.0.1:1", "--decode", "http://127.0.0.1:2"}).code == 2);
    CHECK(router({"--vllm-pd-disaggregation", "--prefill", "127.0.0.1:1"})
              .err.find("http://HOST:PORT wanted, got '127.0.0.1:1'") != std::string::npos);
    CHECK(router({"--vllm-pd-disaggregation", "--polcy", "random"})
              .err.find("unrecognized arguments: --polcy") != std::string::npos);
    const EndedProgram late =
        router({"--vllm-pd-disaggregation", "--prefill", "http://127.0.0.1:1", "--decode",
                "http://127.0.0.1:2", "--worker-startup-timeout-secs", "0"});
    CHECK(late.code == 1);
    CHECK(late.err.find("did not become healthy in time") != std::string::npos);
}
