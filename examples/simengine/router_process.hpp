// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "router_command.hpp"

namespace simengine {

/// A router from its start to its end; its exit code. It listens once all of its engines answer
/// /health. Of the faults on purpose it knows `exit_at_once`, `never_ready` and `die_at_requests`.
int route(const RouterCommand& command, const Options& options);

}  // namespace simengine
