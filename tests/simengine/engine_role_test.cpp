// SPDX-License-Identifier: Apache-2.0
// Which role an engine has, by its command.
#include "support/test.hpp"

#include "engine_role.hpp"

using namespace servetune::test;
using namespace simengine;

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
