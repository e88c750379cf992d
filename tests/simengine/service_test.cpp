// SPDX-License-Identifier: Apache-2.0
// simengine's HTTP interface without a socket.
#include "support/test.hpp"

#include "engine_setup.hpp"
#include "roles.hpp"
#include "service.hpp"

#include <nlohmann/json.hpp>

#include <array>

using namespace servetune;
using namespace servetune::test;
using namespace simengine;

namespace {

struct KeptExchange final : Exchange {
    void answer(int code, std::string_view, std::string_view text) override {
        status = code;
        body = text;
    }
    void begin_stream() override {}
    void write(std::string_view) override {}
    void end_stream() override {}
    void end_connection() override {}
    void set_work(std::size_t) override {}
    int status = 0;
    std::string body{};
};

}  // namespace

TEST_CASE("simengine in roles: equal prompts have caches of their own, and each is fetched") {
    Options options;
    options.search_spaces = SERVETUNE_SOURCE "/search_spaces";
    options.engine_words = {"vllm", "serve", "Qwen/Qwen3-8B"};
    const EngineSetup setup = set_up(options);
    CacheRooms rooms(false);
    ServiceOptions prefill;
    prefill.dialect = setup.dialect;
    prefill.engine = setup.engine;
    prefill.served_names = {"Qwen/Qwen3-8B"};
    prefill.role = simengine::EngineRole::prefill;
    boost::asio::io_context context;
    Service service(
        context, prefill, *setup.cost,
        {.die = [](const std::string&) {},
         .drop_all = [] {},
         .first_request = [] {},
         .fetch = [](std::size_t, const Handover&, std::int64_t) {},
         .offer = [&](std::uint64_t room,
                      bool computed) { computed ? rooms.computed(room) : rooms.lost(room); }});
    const std::string asked =
        nlohmann::json{
            {"prompt", "the same words"},
            {"max_tokens", 1},
            {"kv_transfer_params", {{"do_remote_decode", true}, {"do_remote_prefill", false}}}}
            .dump();
    std::array<KeptExchange, 4> clients;
    for (KeptExchange& client : clients)
        service.handle({.method = "POST", .path = "/v1/completions", .body = asked}, client);
    context.run();
    for (const KeptExchange& client : clients) {
        INFO(client.body);
        REQUIRE(client.status == 200);
        const std::string room =
            nlohmann::json::parse(client.body).at("kv_transfer_params").at("remote_request_id");
        KeptExchange fetches;
        rooms.handle({.method = "GET", .path = "/cache", .query = "room=" + room}, fetches);
        CHECK(fetches.status == 200);
    }
}

TEST_CASE(
    "simengine in roles: a --kv-transfer-config that names no role is refused in the engine's "
    "words") {
    const simengine::Dialect& of_vllm = dialect_of(EngineKind::vllm);
    const auto role = [&](const std::string& config) {
        EngineCommand command;
        command.flags["--kv-transfer-config"] = {config};
        return engine_role_of(of_vllm, command);
    };
    CHECK(role(R"({"kv_role":"kv_producer"})") == simengine::EngineRole::prefill);
    CHECK(role(R"({"kv_role":"kv_consumer"})") == simengine::EngineRole::decode);
    for (const char* wrong : {R"({"kv_role":1})", R"({"kv_role":null})", "{}", "[]", "no JSON"}) {
        INFO(wrong);
        CHECK_THROWS_AS(role(wrong), CommandRefused);
    }
}
