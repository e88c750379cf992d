// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "engine_setup.hpp"

namespace simengine {

/// Lives an engine's life: takes its port, loads, says so, serves, and ends when it is told to or
/// when it goes wrong. Returns the exit code; where an engine dies hard, so does the process.
int live(const EngineSetup& setup, const Options& options);

}  // namespace simengine
