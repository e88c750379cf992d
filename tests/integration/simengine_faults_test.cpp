// SPDX-License-Identifier: Apache-2.0
// simengine from outside: every fault.
#include "support/simengine.hpp"
#include "support/simengine_commands.hpp"
#include "support/test.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/detail/load/probe.hpp"

#include <sys/types.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

Words with_fault(const std::string& word, const Words& engine = vllm) {
    return fast(engine, {"--fault", word});
}

}  // namespace

TEST_CASE("simengine faults: starts that do not end well") {
    SimEngine never(program, with_fault("never_ready"));
    CHECK_FALSE(never.wait_until_listening(0.5));
    CHECK_FALSE(never.process().wait_at_most(std::chrono::milliseconds(1)));

    CHECK(ended(with_fault("exit_at_once")).code == 1);
    CHECK(ended(with_fault("exit_at_once=3")).code == 3);
    CHECK(ended(with_fault("exit_at_load")).code == 137);

    SimEngine memory(program, with_fault("oom_then_hang"));
    CHECK(says(memory, "CUDA out of memory"));
    CHECK_FALSE(memory.wait_until_listening(0.3));

    SimEngine late(program, with_fault("listen_late=2"));
    CHECK(says(late, "Application startup complete"));
    CHECK_FALSE(late.wait_until_listening(0.1));
    CHECK(late.wait_until_ready());

    SimEngine busy(program, with_fault("answer_503=1.5"));
    REQUIRE(busy.wait_until_listening());
    CHECK(busy.get("/health").status == 503);
    CHECK(busy.post("/v1/chat/completions", chat_body(2).dump()).status == 503);
    CHECK(busy.wait_until_ready());
}

TEST_CASE("simengine faults: under load") {
    ReadyEngine dying(with_fault("die_at_requests=5"));
    CHECK(succeeded(load(dying, 12, 4, 1)) == 4);
    CHECK(dying.process().wait_at_most(std::chrono::seconds(5)) == 1);
    CHECK(has(dying.process().err(), "EngineCore encountered a fatal error"));

    ReadyEngine spent(with_fault("die_at_tokens=30", sglang));
    CHECK(succeeded(load(spent, 12, 8, 1)) == 3);
    CHECK(spent.process().wait_at_most(std::chrono::seconds(5)) == 1);
    CHECK(has(spent.process().err(), "Scheduler hit an exception"));

    ReadyEngine stalling(with_fault("stall_mid_stream=20"));
    const LoadRun stalled = load(stalling, 4, 15, 2, {.stall_timeout_seconds = 0.4});
    CHECK(any_of(stalled.records,
                 [](const RequestRecord& r) { return r.end == RequestEnd::stalled; }));
    CHECK(stalling.get("/health").status == 200);
    // A trial whose time is over does not wait for the answer.
    std::stop_source over;
    const std::jthread later([&over] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        over.request_stop();
    });
    const auto asked = std::chrono::steady_clock::now();
    CHECK_FALSE(calibrated({stalling.url(), "Qwen/Qwen3-8B"}, over.get_token()));
    CHECK(std::chrono::steady_clock::now() - asked < std::chrono::minutes(1));

    ReadyEngine restarting(with_fault("restart_mid_run=6"));
    const LoadRun broken = load(restarting, 12, 400, 3);
    // Which answers had begun is a matter of timing; libcurl sends the others again. Slowed down by
    // a sanitizer, none may have.
    if (!sanitized)
        CHECK(any_of(broken.records,
                     [](const RequestRecord& r) { return r.end == RequestEnd::reset; }));
    CHECK(succeeded(broken) >= 9);
    CHECK(has(restarting.get("/metrics").body,
              "vllm:prompt_tokens_total{engine=\"0\",model_name=\"Qwen/Qwen3-8B\"} "));
}

TEST_CASE("simengine faults: answers") {
    ReadyEngine other(with_fault("wrong_model=somebody/else"));
    CHECK(served_models({other.url(), ""}) == std::vector<std::string>{"somebody/else"});
    CHECK(Json::parse(other.post("/v1/chat/completions", chat_body(2).dump()).body)["model"] ==
          "somebody/else");

    ReadyEngine garbled(with_fault("wrong_json"));
    CHECK(
        Json::parse(garbled.post("/v1/chat/completions", chat_body(2).dump()).body, nullptr, false)
            .is_discarded());
    CHECK(load(garbled, 2, 4, 1).records.front().end == RequestEnd::malformed);

    ReadyEngine miscounting(with_fault("bad_usage"));
    const LoadRun counted = load(miscounting, 2, 8, 1, {.ignore_eos = true});
    CHECK(counted.records.front().end == RequestEnd::wrong_length);
    CHECK(counted.records.front().chunks == 8);
}

TEST_CASE("simengine faults: ends and leftovers") {
    ReadyEngine stubborn(with_fault("ignore_term"));
    stubborn.process().signal(SIGTERM);
    CHECK_FALSE(stubborn.process().wait_at_most(std::chrono::milliseconds(300)));
    CHECK(stubborn.get("/health").status == 200);

    ReadyEngine slow(with_fault("stop_slowly=1"));
    slow.process().signal(SIGTERM);
    CHECK_FALSE(slow.process().wait_at_most(std::chrono::milliseconds(200)));
    CHECK(slow.process().wait_at_most(std::chrono::seconds(5)) == 0);

    ReadyEngine noisy(with_fault("flood_log=10000000"));
    CHECK(says(noisy, std::string(99'999, '#') + "\n" + std::string(99'999, '#')));
    CHECK(noisy.get("/health").status == 200);

    ReadyEngine parent(with_fault("grandchild_keeps_port"));
    const std::uint16_t port = parent.port();
    parent.process().signal(SIGTERM);
    CHECK(parent.process().wait_at_most(std::chrono::seconds(5)) == 0);
    CHECK(has(ended(fast({"vllm", "serve", model, "--port", std::to_string(port)})).err,
              "Address already in use"));
    const std::string said = parent.process().out();
    const auto at = said.find("simengine: process ");
    REQUIRE(at != std::string::npos);
    const pid_t grandchild = std::atoi(said.c_str() + at + 19);
    CHECK(kill(grandchild, SIGTERM) == 0);
    CHECK(kill(grandchild, 0) == 0);  // it does not care
    CHECK(kill(grandchild, SIGKILL) == 0);
}
