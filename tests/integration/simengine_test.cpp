// SPDX-License-Identifier: Apache-2.0
// simengine from outside: each engine's dialect, its cache and counters, its ends.
#include "support/simengine.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/simengine_commands.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"
#include "engine/help.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/detail/perf/simulator.hpp"
#include "servetune/detail/predict/serving.hpp"
#include "servetune/load_test.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

const std::vector<Words> all{vllm, sglang, trtllm, llama};

/// Waits until the status says so; false after ten seconds.
bool comes_true(const SimEngine& engine, const char* key, double value) {
    for (int i = 0; i < 2000; ++i) {
        if (const HttpAnswer status = engine.get("/simengine");
            status.status == 200 && Json::parse(status.body).at(key) == value)
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

void check_refused(const Words& command, int code, const std::string& says) {
    const EndedProgram end = ended(command);
    INFO(end.err);
    CHECK(end.code == code);
    CHECK(has(end.err, says));
}

/// A chat request that is begun and not read; closing it is leaving.
std::unique_ptr<Socket> begun(const SimEngine& engine, const Json& body) {
    auto connection = std::make_unique<Socket>();
    sockaddr_in address = loopback(engine.port());
    REQUIRE(connect(connection->id(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    const std::string content = body.dump();
    const std::string request =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
        std::to_string(content.size()) + "\r\n\r\n" + content;
    REQUIRE(send(connection->id(), request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size()));
    return connection;
}

}  // namespace

TEST_CASE("simengine: each engine's command starts it, and it answers on the usual paths") {
    const std::vector<Words> measured{vllm, joined(sglang, {"--enable-metrics"}), trtllm,
                                      joined(llama, {"--metrics"})};
    for (const Words& command : measured) {
        INFO(command.front());
        ReadyEngine engine(fast(command));
        const auto models = served_models({engine.url(), ""});
        REQUIRE(models.size() == 1);
        CHECK(models.front() == model);

        const Json chat =
            Json::parse(engine.post("/v1/chat/completions", chat_body(7).dump()).body);
        CHECK(chat["usage"]["completion_tokens"] == 7);
        CHECK(chat["usage"]["prompt_tokens"] == 14);
        CHECK(chat["choices"][0]["finish_reason"] == "length");
        CHECK_FALSE(chat["choices"][0]["message"]["content"].get<std::string>().empty());
        const Json ids{{"model", model},
                       {"prompt", {1001, 1002, 1003, 1004, 1005}},
                       {"max_tokens", 3},
                       {"ignore_eos", true}};
        const Json text = Json::parse(engine.post("/v1/completions", ids.dump()).body);
        CHECK(text["usage"]["prompt_tokens"] == 5);
        CHECK(text["usage"]["completion_tokens"] == 3);

        const LoadRun run = load(engine, 24, 12, 8, {.ignore_eos = true});
        CHECK(succeeded(run) == 24);
        for (const RequestRecord& record : run.records) {
            INFO(record.error);
            CHECK(record.chunks == 12);
            CHECK(record.output_tokens == 12);
        }
        CHECK(engine.get("/no/such/path").status == 404);
        CHECK(engine.get("/metrics").status == 200);
        engine.process().signal(SIGTERM);
        CHECK(engine.process().wait_at_most(std::chrono::seconds(5)) == 0);
        CHECK(engine.get("/health").status == 0);
    }
}

TEST_CASE("simengine: what an engine refuses, it refuses with its own words and code") {
    check_refused(joined(vllm, {"--max-num-seqz", "3"}), 2,
                  "vllm: error: unrecognized arguments: --max-num-seqz");
    check_refused(joined(vllm, {"--max-num-seqs=many"}), 2,
                  "vllm serve: error: argument --max-num-seqs: invalid int value: 'many'");
    check_refused(joined(vllm, {"--dtype", "float12"}), 2,
                  "error: argument --dtype: invalid choice: 'float12' (choose from 'auto', ");
    check_refused(joined(vllm, {"--max-num-seqs"}), 2,
                  "error: argument --max-num-seqs: expected one argument");
    check_refused(joined(sglang, {"--mem-fraction-statik=0.8"}), 2,
                  "launch_server.py: error: unrecognized arguments: --mem-fraction-statik=0.8");
    check_refused(joined(trtllm, {"--max_batch_sizes", "8"}), 2,
                  "Error: No such option: --max_batch_sizes");
    check_refused(joined(trtllm, {"--max_batch_size", "x"}), 2,
                  "Error: Invalid value for '--max_batch_size': 'x' is not a valid integer.");
    check_refused(joined(llama, {"--foo"}), 1, "error: invalid argument: --foo");
    check_refused(joined(llama, {"-b", "x"}), 1,
                  "error while handling argument \"--batch-size\": stoi");
    // Its own mistakes, and ours.
    check_refused({"--hardware", "h100-sxn", "vllm", "serve", model}, 2, "h100-sxm");
    check_refused({"--seed", "-1", "vllm", "serve", model}, 2, "--seed");
    check_refused({"vllm", "serve", "Qwen/Qwen3-8C"}, 2, "Qwen/Qwen3-8B");
    check_refused({"vlm", "serve", model}, 2,
                  "an engine's command wanted behind the options: vllm serve MODEL");
    check_refused({}, 2, "an engine's command wanted");
    check_refused({"--fault", "never_redy", "vllm", "serve", model}, 2,
                  "unknown name 'never_redy'; nearest: never_ready");
    check_refused({"--fault", "answer_503=soon", "vllm", "serve", model}, 2,
                  "--fault answer_503: a number above 0 wanted, got 'soon'");
    check_refused({"--noise", "a", "vllm", "serve", model}, 2, "--noise RUN[,STEP] wanted");
    check_refused({"--time-scale", "0", "vllm", "serve", model}, 2, "--time-scale");
}

TEST_CASE(
    "simengine: under an engine's own name it takes that engine's words, and lists its flags") {
    const TemporaryFolder folder;
    const Catalogue catalogue{SERVETUNE_SOURCE "/search_spaces"};
    for (const char* name : {"vllm", "python3", "trtllm-serve", "llama-server"})
        fs::create_symlink(program, folder.path() / name);
    const std::string path = folder.path().string() + ":" + std::getenv("PATH");
    setenv("PATH", path.c_str(), 1);
    for (const Engine& engine : catalogue.engines()) {
        INFO(engine.name);
        const InstalledFlags installed = installed_flags(engine);
        CHECK(installed.why_not.empty());
        CHECK(installed.flags.size() > 30);
        for (const EngineParameter& declared : engine.parameters)
            if (declared.until.empty() && !declared.destination.flag.empty()) {
                INFO(declared.destination.flag);
                CHECK(installed.flags.contains(
                    declared.destination.flag.substr(0, declared.destination.flag.find('.'))));
            }
    }
    setenv("SIMENGINE_OPTIONS", "--time-scale 1000 --fault wrong_model=another", 1);
    SimEngine engine(folder.path() / "vllm", {"serve", model, "--port", "0"});
    unsetenv("SIMENGINE_OPTIONS");
    REQUIRE(engine.wait_until_ready());
    CHECK(served_models({engine.url(), ""}) == std::vector<std::string>{"another"});
}

TEST_CASE("simengine: aliases, spellings and lists of flags mean what they mean to the engine") {
    ReadyEngine engine(fast({"vllm", "serve", model, "--port", "0", "--served-model-name", "first",
                             "second", "--max_model_len", "4k", "-tp", "2"}));
    const Json models = Json::parse(engine.get("/v1/models").body);
    CHECK(models["data"][0]["id"] == "first");
    CHECK(models["data"][1]["id"] == "second");
    CHECK(models["data"][0]["max_model_len"] == 4000);
    Json body = chat_body(2);
    CHECK(engine.post("/v1/chat/completions", body.dump()).status == 404);
    body["model"] = "second";
    CHECK(engine.post("/v1/chat/completions", body.dump()).status == 200);
}

TEST_CASE("simengine: an options file is read, in YAML and JSON") {
    const TemporaryFolder folder;
    const auto yaml = folder.write(
        "options.yaml", "max_batch_size: 3\nkv_cache_config:\n  free_gpu_memory_fraction: 0.5\n");
    const auto json = folder.write(
        "options.json",
        R"({"max_batch_size": 3, "kv_cache_config": {"free_gpu_memory_fraction": 0.5}})");
    for (const auto& file : {yaml, json}) {
        ReadyEngine engine(fast(joined(trtllm, {"--extra_llm_api_options", file.string()})));
        const Json body = chat_body(400);
        std::vector<std::unique_ptr<Socket>> clients;
        for (int i = 0; i < 8; ++i) clients.push_back(begun(engine, body));
        CHECK(comes_true(engine, "running", 3));
    }
    CHECK(has(
        ended(joined(trtllm, {"--extra_llm_api_options", (folder.path() / "none.yaml").string()}))
            .err,
        "none.yaml"));
}

TEST_CASE("simengine: refuses what the engine refuses over HTTP") {
    ReadyEngine engine(fast(joined(vllm, {"--max-model-len", "512", "--api-key", "secret"})));
    CHECK(engine.post("/v1/chat/completions", chat_body(2).dump()).status == 401);
    for (const Words& command : all) {
        INFO(command.front());
        const Words limited =
            command == vllm     ? joined(vllm, {"--max-model-len", "512"})
            : command == sglang ? joined(sglang, {"--context-length", "512"})
            : command == trtllm
                ? joined(trtllm, {"--max_seq_len", "512"})
                : Words{"llama-server", "-m", model, "--port", "0", "-c", "512", "-np", "1"};
        ReadyEngine small(fast(limited));
        const HttpAnswer longer =
            small.post("/v1/chat/completions", chat_body(64, words_text(600)).dump());
        CHECK(longer.status == 400);
        const Json error = Json::parse(longer.body);
        CHECK(has((error.contains("error") ? error["error"] : error)["message"].get<std::string>(),
                  "512"));
        CHECK(small.post("/v1/chat/completions", "{nonsense").status == 400);
        CHECK(small.post("/v1/chat/completions", R"({"messages": []})").status == 400);
        CHECK(small.post("/v1/completions", R"({"prompt": []})").status == 400);
        CHECK(small.post("/v1/completions", R"({"prompt": "a", "max_tokens": 0})").status == 400);
        if (command.front() != "llama-server")  // there it is as many as it likes
            CHECK(small.post("/v1/completions", R"({"prompt": "a", "max_tokens": -1})").status ==
                  400);
        CHECK(small.get("/v1/chat/completions").status == 405);
    }
}

TEST_CASE(
    "simengine: the load generator counts its prompts exactly, and conversations use the cache") {
    ReadyEngine engine(fast(vllm));
    for (const auto api : {Endpoint::Api::chat, Endpoint::Api::completions}) {
        const Endpoint endpoint{engine.url(), model, api};
        const Calibration found =
            calibrate([&](const std::string& text) { return count_prompt_tokens(endpoint, text); });
        CHECK(found.exact);
        CHECK(found.left_out.empty());
        CHECK(found.tokens_per_estimated_token == Approx(1).margin(0.35));
    }
}

TEST_CASE("simengine: the same request twice hits the prefix cache, and a reset clears it") {
    setenv("VLLM_SERVER_DEV_MODE", "1", 1);
    SimEngine vllm_engine(program, fast(joined(vllm, {"--enable-prompt-tokens-details"})));
    unsetenv("VLLM_SERVER_DEV_MODE");
    SimEngine sglang_engine(program,
                            fast(joined(sglang, {"--enable-cache-report", "--enable-metrics"})));
    const Json body = chat_body(4, words_text(200));
    const auto cached = [&](const SimEngine& engine) {
        return Json::parse(engine.post("/v1/chat/completions", body.dump())
                               .body)["usage"]["prompt_tokens_details"]["cached_tokens"]
            .get<int>();
    };
    for (SimEngine* engine : {&vllm_engine, &sglang_engine}) {
        REQUIRE(engine->wait_until_ready());
        CHECK(cached(*engine) == 0);
        CHECK(cached(*engine) >= 176);
        CHECK(engine->post(engine == &vllm_engine ? "/reset_prefix_cache" : "/flush_cache", "{}")
                  .status == 200);
        CHECK(cached(*engine) == 0);
    }
    // What was said belongs to the next turn.
    Json next = body;
    const Json first = Json::parse(vllm_engine.post("/v1/chat/completions", body.dump()).body);
    next["messages"].push_back(
        {{"role", "assistant"}, {"content", first["choices"][0]["message"]["content"]}});
    next["messages"].push_back({{"role", "user"}, {"content", words_text(40)}});
    const Json second = Json::parse(vllm_engine.post("/v1/chat/completions", next.dump()).body);
    CHECK(second["usage"]["prompt_tokens_details"]["cached_tokens"] == 208);
    CHECK(has(vllm_engine.get("/metrics").body, "vllm:prefix_cache_hits_total{"));
    CHECK(has(sglang_engine.get("/metrics").body, "sglang:cached_tokens_total{"));

    ReadyEngine plain(fast(vllm));
    CHECK(plain.post("/reset_prefix_cache", "{}").status == 404);
}

TEST_CASE("simengine: guessed tokens are counted where it speculates, and only there") {
    SimEngine plain(program, fast(vllm));
    SimEngine guessing(program,
                       fast(joined(vllm, {"--speculative-config",
                                          R"({"method": "ngram", "num_speculative_tokens": 3})"})));
    REQUIRE(plain.wait_until_ready());
    REQUIRE(guessing.wait_until_ready());
    CHECK_FALSE(has(plain.get("/metrics").body, "spec_decode"));
    const TemporaryFolder folder;
    ChildProcess bench(
        {SERVETUNE_PROGRAM, "bench", "--url", guessing.url(), "--workload", "random:30x40",
         "--requests", "48", "--concurrency", "4", "--save", "result.json", "--quiet"},
        folder.path());
    (void)bench.wait();
    INFO(bench.out() << bench.err());
    const Json figures =
        Json::parse(read_file(folder.path() / "result.json"))["servetune"]["figures"];
    const double drafted = figures["server_drafted_tokens"];
    const double accepted = figures["server_accepted_tokens"];
    // A step takes 1 + 3 tokens of each sequence and gives 1 and the guesses that were right: each
    // of 48 * 39 tokens after a request's first is of one kind or the other.
    const double steps = drafted / 3;
    CHECK(accepted > 0);
    CHECK(steps + accepted == 48 * 39);
    CHECK(accepted / steps == Approx(0.3 + 0.09 + 0.027).epsilon(0.2));
    CHECK(has(bench.out(), " guessed tokens "));
}

TEST_CASE("simengine: what only some engines have, and only when told to") {
    ReadyEngine quiet(fast(llama));
    CHECK(quiet.get("/metrics").status == 501);
    ReadyEngine blind(fast(
        joined(sglang, {"--schedule-conservativeness", "0.7", "--reasoning-parser", "qwen3"})));
    CHECK(blind.get("/metrics").status == 404);
    const Json info = Json::parse(blind.get("/get_server_info").body);
    CHECK(info["schedule_conservativeness"] == 0.7);
    CHECK(info["served_model_name"] == model);
    const Json thought = Json::parse(blind.post("/v1/chat/completions", chat_body(9).dump()).body);
    CHECK_FALSE(thought["choices"][0]["message"]["reasoning_content"].get<std::string>().empty());
    const LoadRun run = load(blind, 4, 9, 2, {.ignore_eos = true});
    CHECK(succeeded(run) == 4);
    CHECK(run.records.front().chunks == 9);
    ReadyEngine other(fast(vllm));
    CHECK(other.get("/get_server_info").status == 404);
    Json body = chat_body(500);
    body.erase("ignore_eos");
    const Json once = Json::parse(other.post("/v1/chat/completions", body.dump()).body);
    const Json twice = Json::parse(other.post("/v1/chat/completions", body.dump()).body);
    CHECK(once["choices"] == twice["choices"]);
    CHECK(once["usage"]["completion_tokens"].get<int>() <= 500);
}

TEST_CASE("simengine: a client that leaves takes its request with it") {
    ReadyEngine engine(joined({"--start-scale", "100000"}, joined(vllm, {"--max-num-seqs=2"})));
    Json body = chat_body(4000);
    body["stream"] = true;
    {
        const auto first = begun(engine, body), second = begun(engine, body),
                   third = begun(engine, body);
        CHECK(comes_true(engine, "running", 2));
        CHECK(comes_true(engine, "waiting", 1));
    }
    CHECK(comes_true(engine, "running", 0));
    CHECK(comes_true(engine, "waiting", 0));
    CHECK(comes_true(engine, "cache_use", 0));
    // In the middle of a step, of the queue and of the front end: whatever is cut off, the next one
    // is served.
    for (int i = 0; i < 30; ++i) {
        const auto brief = begun(engine, body);
        std::this_thread::sleep_for(std::chrono::milliseconds(i));
    }
    CHECK(comes_true(engine, "cache_use", 0));
    CHECK(Json::parse(engine.post("/v1/chat/completions", chat_body(3).dump())
                          .body)["usage"]["completion_tokens"] == 3);
}

TEST_CASE("simengine: a client that does not read is dropped, and costs the others nothing") {
    ReadyEngine engine(fast(joined(vllm, {"--max-num-seqs=256"}), {"--time-scale", "5000"}));
    Json body = chat_body(39'000);
    body["stream"] = true;
    const auto deaf = begun(engine, body);
    CHECK(comes_true(engine, "running", 1));
    CHECK(succeeded(load(engine, 20, 20, 4, {.ignore_eos = true})) == 20);
    CHECK(comes_true(engine, "running", 0));
}

TEST_CASE("simengine: out of descriptors it goes on, and serves those that waited") {
    // The limit is inherited; this process sets it back.
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit few{48, before.rlim_max};
    ReadyEngine engine(fast(vllm));
    REQUIRE(prlimit(engine.process().id(), RLIMIT_NOFILE, &few, nullptr) == 0);
    Json body = chat_body(2000);
    body["stream"] = true;
    {
        std::vector<std::unique_ptr<Socket>> clients;
        for (int i = 0; i < 100; ++i) clients.push_back(begun(engine, body));
        const fs::path open = "/proc/" + std::to_string(engine.process().id()) + "/fd";
        CHECK(comes_true([&] {
            return std::distance(fs::directory_iterator(open), fs::directory_iterator()) >= 48;
        }));
    }
    CHECK(succeeded(load(engine, 4, 4, 2, {.ignore_eos = true})) == 4);
    CHECK(comes_true(engine, "running", 0));
}

TEST_CASE("simengine: TERM ends it at once with streams open, and the port is free") {
    ReadyEngine engine(joined({"--start-scale", "100000"}, vllm));
    Json body = chat_body(4000);
    body["stream"] = true;
    std::vector<std::unique_ptr<Socket>> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(begun(engine, body));
    CHECK(comes_true(engine, "running", 20));
    const auto before = Clock::now();
    engine.process().signal(SIGTERM);
    CHECK(engine.process().wait_at_most(std::chrono::seconds(5)) == 0);
    CHECK(Clock::now() - before < std::chrono::seconds(3));  // a few ms on an idle machine
    SimEngine next(program,
                   fast({"vllm", "serve", model, "--port", std::to_string(engine.port())}));
    CHECK(next.wait_until_ready());
}

TEST_CASE("simengine: a port in use is what the engine says it is") {
    ReadyEngine engine(fast(vllm));
    const std::string port = std::to_string(engine.port());
    check_refused(fast({"vllm", "serve", model, "--port", port}), 1, "Address already in use");
    check_refused(fast({"llama-server", "-m", model, "--port", port, "--host", "127.0.0.1"}), 1,
                  "couldn't bind HTTP server socket");
    check_refused(
        fast({"python3", "-m", "sglang.launch_server", "--model-path", model, "--port", port}), 1,
        "address already in use");
}

TEST_CASE("simengine: a start that fails says why, in the engine's words") {
    check_refused(joined({"--hardware", "a10", "--time-scale", "100000"},
                         {"vllm", "serve", "Qwen/Qwen3-14B"}),
                  1, "CUDA out of memory");
    check_refused(joined({"--hardware", "a100-pcie-40gb", "--time-scale", "100000"},
                         {"vllm", "serve", "Qwen/Qwen3-14B", "--gpu-memory-utilization", "0.6"}),
                  1, "No available memory for the cache blocks");
    const TemporaryFolder folder;
    const auto unknown = folder.write("options.yaml", "kv_cache_config: {no_such_thing: 1}\n");
    check_refused(joined(trtllm, {"--config", unknown.string()}), 1,
                  "kv_cache_config.no_such_thing\n  Extra inputs are not permitted");
}

TEST_CASE("simengine: llama-server answers 503 while it loads, the others refuse connections") {
    SimEngine loading(program, fast(llama, {"--fault", "slow_start=1.5"}));
    REQUIRE(loading.wait_until_listening());
    CHECK(loading.get("/health").status == 503);
    CHECK(has(loading.post("/v1/chat/completions", chat_body(2).dump()).body, "Loading model"));
    CHECK(loading.wait_until_ready());
    const std::uint16_t port = free_port();
    SimEngine refusing(program, fast({"vllm", "serve", model, "--port", std::to_string(port)},
                                     {"--fault", "slow_start=2"}));
    REQUIRE(says(refusing, "\n"));
    CHECK(http(port, "/health").status == 0);  // it says what it loads, and does not listen yet
    CHECK(refusing.wait_until_ready());
}

TEST_CASE("simengine: a load test of it measures what the simulator predicts") {
    // A machine that is busy makes both late: the bound is loose.
    const Words flags{"--max-num-seqs=64"};
    ReadyEngine engine(joined({"--start-scale", "100000"}, joined(vllm, flags)));
    LoadTest test;
    test.endpoint = {engine.url(), model};
    test.workload.dataset = {
        .kind = Dataset::Kind::random, .input_tokens = 128, .output_tokens = 48};
    test.workload.requests = 128;
    test.workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 64};
    test.workload.ignore_eos = true;
    test.salt = 11;
    const LoadTestResult measured = run_load_test(test);
    REQUIRE(measured.statistics.result.successful_requests == 128);
    CHECK(measured.plan.lengths_exact);
    CHECK(measured.validity.verdict != Verdict::unsound);

    const Catalogue catalogue{SERVETUNE_SOURCE "/search_spaces"};
    const std::vector<Engine> engines = catalogue.engines();
    const auto which = find_if(engines, [](const Engine& one) { return one.name == "vllm"; });
    const ServingReader reader(*which, catalogue.traits("vllm"), catalogue.all_models(),
                               catalogue.hardware("h100-sxm"));
    const Serving serving = reader.read(Command{joined({"vllm", "serve", model}, flags)});
    const SimulatedRun predicted =
        simulate({serving.target, serving.settings},
                 SimulatedTraffic(measured.plan.requests, test.workload.arrival));
    CHECK(measured.run.duration_seconds == Approx(predicted.duration_seconds).epsilon(0.25));
    CHECK(measured.run.duration_seconds > 0.98 * predicted.duration_seconds);
}
