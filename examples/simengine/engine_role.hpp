// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine_command.hpp"

#include "servetune/detail/perf/cost_model.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace simengine {

/// What an engine does of a request where prefill and decode run apart.
enum class EngineRole { whole, prefill, decode, either };

/// By its flags: SGLang's `--disaggregation-mode`, vLLM's `--kv-transfer-config` (`kv_both` is
/// either, as each request says). Throws CommandRefused where they cannot be read.
EngineRole engine_role_of(const Dialect& dialect, const EngineCommand& command);

/// The port that `text` names, at least `least` (0: any that is free). Throws CommandRefused in the
/// engine's words of `by`, a flag or a variable.
std::uint16_t port_named(const Dialect& dialect, std::string_view by, const std::string& text,
                         std::int64_t least);

/// Where other engines ask for the caches of this one: by flag (SGLang's bootstrap port, 8998) or
/// variable (vLLM's VLLM_NIXL_SIDE_CHANNEL_HOST and _PORT, localhost and 5600).
struct SideChannel {
    std::string host;
    std::uint16_t port;
};
SideChannel side_channel_of(const Dialect& dialect, const EngineCommand& command,
                            const std::string& host);

/// How long the keys and values of so many tokens take from an engine like this one, as the
/// simulator has it (RolesApart). Throws UsageError where the chip's link is not known.
double cache_transfer_seconds(const servetune::CostModel& cost, std::int64_t tokens);

}  // namespace simengine
