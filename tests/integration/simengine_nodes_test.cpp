// SPDX-License-Identifier: Apache-2.0
// simengine as the parts of one engine over two machines, each a process of its own.
#include "support/simengine.hpp"
#include "support/simengine_commands.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "servetune/detail/host/port.hpp"

#include <csignal>
#include <memory>
#include <string>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

/// The words of either engine for this rank of two.
Words part(bool of_sglang, int rank, int port) {
    const std::string number = std::to_string(rank);
    if (of_sglang)
        return joined(sglang,
                      {"--tp-size", "2", "--dist-init-addr", "127.0.0.1:" + std::to_string(port),
                       "--nnodes", "2", "--node-rank", number});
    Words words =
        joined(vllm, {"--tensor-parallel-size", "2", "--nnodes", "2", "--node-rank", number,
                      "--master-addr", "127.0.0.1", "--master-port", std::to_string(port)});
    if (rank > 0) words.push_back("--headless");
    return words;
}

}  // namespace

TEST_CASE(
    "simengine over machines: the first serves once the other is there, and both end with either") {
    for (const bool of_sglang : {false, true}) {
        INFO((of_sglang ? "sglang" : "vllm"));
        int port = 0;
        {
            const ReservedPort free;
            port = free.number();
        }
        SimEngine first(program, fast(part(of_sglang, 0, port)));
        CHECK_FALSE(first.wait_until_ready(0.5));
        auto other = std::make_unique<SimEngine>(program, fast(part(of_sglang, 1, port)));
        REQUIRE(first.wait_until_ready());
        CHECK(first.post("/v1/chat/completions", chat_body(4).dump()).status == 200);
        CHECK_FALSE(other->wait_until_listening(0.2));  // it answers no requests
        (void)::kill(other->process().id(), SIGKILL);
        const auto code = first.process().wait_at_most(5s);
        REQUIRE(code);
        CHECK(*code != 0);
        CHECK(has(first.process().err(), "another node of the engine is gone"));
        SimEngine again(program, fast(part(of_sglang, 0, port)));
        other = std::make_unique<SimEngine>(program, fast(part(of_sglang, 1, port)));
        REQUIRE(again.wait_until_ready());
        (void)::kill(again.process().id(), SIGTERM);
        CHECK(again.process().wait_at_most(5s) == 0);
        CHECK(other->process().wait_at_most(5s) == 1);
        CHECK(has(other->process().err(), "the first node of the engine is gone"));
    }
}
