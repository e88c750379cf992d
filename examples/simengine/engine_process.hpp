// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "engine_setup.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace simengine {

/// Lives an engine's life: takes its port, loads, says so, serves, and ends when it is told to or
/// when it goes wrong. Returns the exit code; where an engine dies hard, so does the process.
int live(const EngineSetup& setup, const Options& options);

/// Lives the life of a daemon that keeps weights: loads them, says so, tells every engine that asks
/// which weights these are, until it is told to end. Returns the exit code.
int hold_weights(const EngineSetup& setup, const Options& options);

/// Whether an engine has nothing to load: its command says `--load-format ipc_cache`, and a daemon
/// has these weights. Throws IoError where it has not.
bool takes_weights(const EngineSetup& setup);

/// The part of a start that reads the weights.
double seconds_of_weights(const EngineSetup& setup);

/// The devices of an engine that pretends to have some: in a folder that stands for the machine, a
/// locked file for each device that is taken, and a line in `claims` for each engine that took its
/// own. They are held until the process ends.
///
/// `part`: what a process needs of a device: that of an engine, the memory of a daemon that keeps
/// weights there, or both. Takes it of the first `count` of the devices that CUDA_VISIBLE_DEVICES
/// names, else of 0, 1, ... Why it cannot, as an engine says it; empty: it has.
enum class DevicePart : unsigned { engine = 1, weights = 2, all = 3 };
std::string claim_devices(const std::filesystem::path& folder, std::size_t count, DevicePart part);

}  // namespace simengine
