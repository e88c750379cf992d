// SPDX-License-Identifier: Apache-2.0
// What servers may answer when they are asked whether they serve, and what is in force.
#include "support/canned_server.hpp"
#include "support/test.hpp"

#include "deploy/server_probe.hpp"

#include <map>

using namespace servetune;
using namespace servetune::test;
using State = ProbeAnswer::State;

namespace {

Engine some_engine() {
    Engine engine;
    engine.name = "some";
    engine.ready_path = "/health";
    engine.api = {{"chat", "/v1/chat/completions"}, {"server_info", "/get_server_info"}};
    return engine;
}

ProbeAnswer asked(std::map<std::string, CannedServer::Page> answers,
                  const std::string& wanted = "m") {
    const CannedServer server(std::move(answers));
    const Engine engine = some_engine();
    return ServerProbe(engine, endpoint_of(engine, server.port(), wanted), [] { return false; })
        .ask(5);
}

const std::string models = "/v1/models";
const std::string chat = "/v1/chat/completions";
const CannedServer::Page well{200, "{}"};
const CannedServer::Page lists_m{200, R"({"data": [{"id": "m"}]})"};
const std::string one_token =
    R"({"model": "m", "choices": [{"message": {"content": null}}], "usage": {"completion_tokens": 1}})";

}  // namespace

TEST_CASE("server probe: a server serves that is ready, has the model and answers with a token") {
    CHECK(asked({{"/health", well}, {models, lists_m}, {chat, {200, one_token}}}).state ==
          State::serves);
    CHECK(
        asked({{"/health", well}, {chat, {200, R"({"choices": [{"message": {"content": "a"}}]})"}}})
            .state == State::serves);
    // A model on disk goes by its path or by its last part.
    const std::string last_part = R"({"data": [{"id": "weights.gguf"}]})";
    CHECK(asked({{"/health", well},
                 {models, {200, last_part}},
                 {chat, {200, R"({"choices": [{"message": {"content": "a"}}]})"}}},
                "/models/weights.gguf")
              .state == State::serves);
    CHECK(asked({{"/health", well}, {models, {200, last_part}}}, "somebody/weights").kind ==
          FailureKind::wrong_model);
}

TEST_CASE("server probe: an engine has its lists and answers where its file says") {
    const CannedServer server(
        {{"/up", well}, {"/which", lists_m}, {"/answer", {200, one_token}}, {models, {200, "[]"}}});
    Engine engine = some_engine();
    engine.ready_path = "/up";
    engine.api = {{"chat", "/answer"}, {"models", "/which"}};
    const auto probe = [&](const std::string& name) {
        return ServerProbe(engine, endpoint_of(engine, server.port(), name), [] { return false; });
    };
    CHECK(probe("m").ask(5).state == State::serves);
    CHECK(probe("m").why_not_listed().empty());
    CHECK(probe("n").why_not_listed() == "GET /which does not list n any more");
    CHECK(endpoint_of(engine, 1, "m").api == Endpoint::Api::chat);
    engine.api = {{"completions", "/complete"}};
    CHECK(endpoint_of(engine, 1, "m").api == Endpoint::Api::completions);
    CHECK(endpoint_of(engine, 1, "m").answers_path == "/complete");
    CHECK(endpoint_of(engine, 1, "m").models_path == "/v1/models");
}

TEST_CASE(
    "server probe: one without a list of models serves, whichever status says that there is none") {
    for (const int status : {404, 405, 501})
        CHECK(
            asked({{"/health", well}, {models, {status, "{}"}}, {chat, {200, one_token}}}).state ==
            State::serves);
}

TEST_CASE("server probe: one that is not there yet is asked again") {
    CHECK(asked({{"/health", {503, "loading"}}}).message == "GET /health answers 503: loading");
    CHECK(asked({{"/health", {503, "loading"}}}).state == State::not_yet);
    CHECK(asked({{"/health", well}, {models, {500, ""}}}).state == State::not_yet);
    CHECK(asked({{"/health", well}, {models, lists_m}, {chat, {503, ""}}}).state == State::not_yet);
}

TEST_CASE("server probe: why there is no answer is said") {
    const Engine engine = some_engine();
    int port = 0;
    {
        const CannedServer gone(CannedServer::Pages{});
        port = gone.port();
    }
    const ProbeAnswer answer =
        ServerProbe(engine, endpoint_of(engine, port, "m"), [] { return false; }).ask(5);
    CHECK(answer.state == State::not_yet);
    INFO(answer.message);
    CHECK(has(answer.message, "Connection refused"));
    const CannedServer other({{models, {200, R"({"data": [{"id": "n"}]})"}}});
    CHECK(ServerProbe(engine, endpoint_of(engine, other.port(), "m"), [] {
              return false;
          }).why_not_listed() == "GET /v1/models does not list m any more");
    const CannedServer ill({{models, {500, R"({"error": {"message": "engine dead"}})"}}});
    CHECK(ServerProbe(engine, endpoint_of(engine, ill.port(), "m"), [] {
              return false;
          }).why_not_listed() == "GET /v1/models answers 500: engine dead");
}

TEST_CASE("server probe: one that wants a key is not asked again, wherever it says so") {
    for (const int status : {401, 403}) {
        const CannedServer::Page no{status, "no"};
        CHECK(asked({{"/health", no}}).state == State::not_allowed);
        CHECK(asked({{"/health", well}, {models, no}}).state == State::not_allowed);
        const std::string message =
            asked({{"/health", well}, {models, lists_m}, {chat, no}}).message;
        CHECK(message.starts_with("a first POST /v1/chat/completions answers " +
                                  std::to_string(status) + " ("));
        CHECK(
            message.ends_with("): no; the server wants a key: let `api_key_env` name the "
                              "environment variable that holds it"));
    }
}

TEST_CASE("server probe: one that answers wrongly has failed, and the message says with what") {
    const auto kind = [](const CannedServer::Page& list, const CannedServer::Page& completion) {
        const ProbeAnswer answer = asked({{"/health", well}, {models, list}, {chat, completion}});
        CHECK(answer.state == State::failed);
        CHECK_FALSE(answer.message.empty());
        return answer.kind;
    };
    CHECK(kind({200, "[1]"}, well) == FailureKind::load_test_failed);
    CHECK(kind({200, R"({"data": []})"}, well) == FailureKind::wrong_model);
    CHECK(kind(lists_m, {404, R"({"message": "no such model"})"}) == FailureKind::wrong_model);
    CHECK(kind(lists_m, {200, R"({"model": "n", "choices": []})"}) == FailureKind::wrong_model);
    CHECK(kind(lists_m, {500, "engine dead"}) == FailureKind::load_test_failed);
    CHECK(kind(lists_m, {200, "[]"}) == FailureKind::load_test_failed);
    CHECK(kind(lists_m, {200, R"({"model": 7, "choices": [3], "usage": []})"}) ==
          FailureKind::load_test_failed);
    CHECK(kind(lists_m, {200, R"({"usage": {"completion_tokens": 0}})"}) ==
          FailureKind::load_test_failed);
}

TEST_CASE("server probe: flags that are not in force are told, each in the server's words") {
    const CannedServer server(
        {{"/get_server_info",
          {200,
           R"({"max_running_requests": 64, "dtype": "bf16", "enable_metrics": false, "disable_x": true,
                                          "mem_fraction_static": 0.8, "list": [1], "total_slots": 4, "key": "***"})"}}});
    Engine engine = some_engine();
    engine.reported_as = {{"--parallel", "total_slots"}};
    engine.not_about_speed = {"--key"};
    EngineParameter replicas;
    replicas.parameter = Parameter::integer("dp", 1, 8);
    replicas.destination.flag = "--dp";
    engine.parameters = {replicas};
    engine.devices = {{"dp"}};
    const std::vector<std::string> argv{"program",
                                        "--max-running-requests=128",
                                        "--dtype",
                                        "auto",
                                        "--enable-metrics",
                                        "--disable-x",
                                        "--mem-fraction-static=0.80",
                                        "--list=2",
                                        "--parallel",
                                        "8",
                                        "--unknown=1",
                                        "--key=mine"};
    const Endpoint endpoint = endpoint_of(engine, server.port(), "m");
    const FlagsNotInForce otherwise = flags_not_in_force(engine, endpoint, argv);
    CHECK(otherwise.sure ==
          std::vector<std::string>{"--max-running-requests 128 was asked for, 64 is in force",
                                   "--enable-metrics was asked for, false is in force",
                                   "--parallel 8 was asked for, 4 is in force"});
    CHECK(otherwise.perhaps.empty());
    // Another name, a scaled fraction, and the share of one of two replicas.
    const FlagsNotInForce rewritten = flags_not_in_force(
        engine, endpoint,
        {"program", "--dtype=bfloat16", "--mem-fraction-static=0.9", "--parallel=8", "--dp=2"});
    CHECK(rewritten.sure.empty());
    CHECK(rewritten.perhaps.size() == 3);
}

TEST_CASE("server probe: the labels of a metric tell what is in force, as vLLM's page does") {
    const CannedServer server(
        {{"/metrics",
          {200,
           "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"32\","
           "cache_dtype=\"fp8\",enable_prefix_caching=\"False\",kv_cache_memory_bytes="
           "\"4294967296\",num_gpu_blocks_override=\"None\"} 1.0\n"}}});
    Engine engine = some_engine();
    engine.api["server_info"] = "/metrics#vllm:cache_config_info";
    engine.reported_as = {{"--kv-cache-dtype", "cache_dtype"}};
    const FlagsNotInForce otherwise = flags_not_in_force(
        engine, endpoint_of(engine, server.port(), "m"),
        {"program", "--block-size", "16", "--kv-cache-dtype", "fp8", "--enable-prefix-caching",
         "--kv-cache-memory-bytes", "4G", "--num-gpu-blocks-override", "9"});
    CHECK(otherwise.sure ==
          std::vector<std::string>{"--block-size 16 was asked for, 32 is in force",
                                   "--enable-prefix-caching was asked for, false is in force"});
    CHECK(otherwise.perhaps.empty());
}
