// SPDX-License-Identifier: Apache-2.0
#include "engine_role.hpp"

#include "servetune/detail/perf/simulator.hpp"
#include "servetune/value.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

namespace simengine {
namespace {

constexpr std::uint16_t sglang_bootstrap_port = 8998;   ///< its server arguments of 0.5.23
constexpr std::uint16_t vllm_side_channel_port = 5600;  ///< its envs.py of 0.32.0

std::string variable(const char* name, const std::string& otherwise) {
    const char* set = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
    return set != nullptr && *set != '\0' ? set : otherwise;
}

}  // namespace

std::uint16_t port_named(const Dialect& dialect, std::string_view by, const std::string& text,
                         std::int64_t least) {
    const auto number = servetune::integer_of(text);
    if (!number || *number < least || *number > 65535)
        throw CommandRefused(bad_value_text(dialect, by, text, "int", {}), dialect.refusal_code);
    return static_cast<std::uint16_t>(*number);
}

EngineRole engine_role_of(const Dialect& dialect, const EngineCommand& command) {
    if (dialect.kind == EngineKind::sglang) {
        const std::string mode = command.value("--disaggregation-mode").value_or("null");
        return mode == "prefill"  ? EngineRole::prefill
               : mode == "decode" ? EngineRole::decode
                                  : EngineRole::whole;
    }
    const auto config =
        dialect.kind == EngineKind::vllm ? command.value("--kv-transfer-config") : std::nullopt;
    if (!config) return EngineRole::whole;
    const auto object = nlohmann::json::parse(*config, nullptr, false);
    const nlohmann::json said =
        object.is_object() ? object.value("kv_role", nlohmann::json()) : nlohmann::json();
    const std::string role = said.is_string() ? said.get<std::string>() : "";
    if (role == "kv_producer") return EngineRole::prefill;
    if (role == "kv_consumer") return EngineRole::decode;
    if (role == "kv_both") return EngineRole::either;
    throw CommandRefused(
        bad_value_text(dialect, "--kv-transfer-config", *config, "JSON with a kv_role", {}),
        dialect.refusal_code);
}

SideChannel side_channel_of(const Dialect& dialect, const EngineCommand& command,
                            const std::string& host) {
    if (dialect.kind == EngineKind::sglang) {
        const auto given = command.value("--disaggregation-bootstrap-port");
        return {host, given ? port_named(dialect, "--disaggregation-bootstrap-port", *given, 1)
                            : sglang_bootstrap_port};
    }
    return {
        variable("VLLM_NIXL_SIDE_CHANNEL_HOST", "localhost"),
        port_named(dialect, "VLLM_NIXL_SIDE_CHANNEL_PORT",
                   variable("VLLM_NIXL_SIDE_CHANNEL_PORT", std::to_string(vllm_side_channel_port)),
                   1)};
}

double cache_transfer_seconds(const servetune::CostModel& cost, std::int64_t tokens) {
    return servetune::RolesApart::joined(cost, 1, cost, 1).seconds_to_move(tokens);
}

}  // namespace simengine
