// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "engine_setup.hpp"

#include <optional>

namespace simengine {

/// Lives an engine's life: takes its port, loads, says so, serves, and ends when it is told to or
/// when it goes wrong. Returns the exit code; where an engine dies hard, so does the process.
int live(const EngineSetup& setup, const Options& options);

/// A router's life where the words are `vllm-router ...` or `python3 -m sglang_router.launch_router
/// ...`: it listens once all of its engines answer /health. Each request goes to the engine of
/// either role with the fewest in flight, and is not tried again. Of the faults it knows
/// `exit_at_once`, `never_ready` and `die_at_requests`. Nothing: the words are no router's. Throws
/// CommandRefused where the router would refuse them.
std::optional<int> route(const Options& options);

}  // namespace simengine
