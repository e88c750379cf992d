// SPDX-License-Identifier: Apache-2.0
// Which part of an engine over several machines a process is, by its command.
#include "support/test.hpp"

#include "engine_nodes.hpp"

using namespace servetune::test;
using namespace simengine;

TEST_CASE(
    "simengine over machines: its part is read from each engine's words, and wrong ones are "
    "refused") {
    const auto part = [](EngineKind kind,
                         const std::map<std::string, std::vector<std::string>>& flags) {
        EngineCommand command;
        command.flags = flags;
        return engine_part_of(dialect_of(kind), command);
    };
    CHECK(part(EngineKind::vllm, {}).nodes == 1);
    CHECK(part(EngineKind::vllm, {{"--nnodes", {"1"}}, {"--node-rank", {"7"}}}).rank == 0);
    const EnginePart second =
        part(EngineKind::vllm,
             {{"--nnodes", {"2"}}, {"--node-rank", {"1"}}, {"--master-addr", {"10.1.2.3"}}});
    CHECK(second.nodes == 2);
    CHECK(second.rank == 1);
    CHECK(second.leader.text() == "10.1.2.3:29501");
    CHECK(part(EngineKind::vllm, {{"--nnodes", {"2"}}, {"--master-port", {"7"}}}).leader.text() ==
          "127.0.0.1:7");
    const EnginePart third = part(
        EngineKind::sglang,
        {{"--nnodes", {"3"}}, {"--node-rank", {"2"}}, {"--dist-init-addr", {"[fd00::3]:20000"}}});
    CHECK(third.rank == 2);
    CHECK(third.leader.host == "fd00::3");
    CHECK(third.leader.port == 20000);
    for (const char* wrong : {"0", "x", "-1", "99999999999999999999"}) {
        INFO(wrong);
        CHECK_THROWS_AS(part(EngineKind::vllm, {{"--nnodes", {wrong}}}), CommandRefused);
    }
    CHECK_THROWS_AS(part(EngineKind::vllm, {{"--nnodes", {"2"}}, {"--node-rank", {"2"}}}),
                    CommandRefused);
    CHECK_THROWS_AS(part(EngineKind::sglang, {{"--nnodes", {"2"}}}), CommandRefused);
    CHECK_THROWS_AS(
        part(EngineKind::sglang, {{"--nnodes", {"2"}}, {"--dist-init-addr", {"10.1.2.3:x"}}}),
        CommandRefused);
}
