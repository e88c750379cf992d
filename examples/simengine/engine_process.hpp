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

/// A router's life where the words are `vllm-router ...` or `python3 -m sglang_router.launch_router
/// ...`: it listens once all of its engines answer /health. Each request goes to the engine of
/// either role with the fewest in flight, and is not tried again. Of the faults it knows
/// `exit_at_once`, `never_ready` and `die_at_requests`. Nothing: the words are no router's. Throws
/// CommandRefused where the router would refuse them.
std::optional<int> route(const Options& options);

/// `vllm preload`, as its words are read: those of the engine's command, and where the daemon's
/// sockets lie.
struct PreloadWords {
    std::vector<std::string> engine_words;
    std::string folder;
};
/// Throws CommandRefused where vLLM would refuse.
PreloadWords read_preload(const std::vector<std::string>& words);

/// Lives the life of a daemon that keeps weights: loads them, says so, tells every engine that asks
/// which weights these are, until it is told to end. Returns the exit code.
int hold_weights(const EngineSetup& setup, const Options& options);

/// How an engine's start goes with the weights of a daemon, or beside one.
struct WeightsTaken {
    bool taken = false;              ///< nothing has to be loaded
    std::vector<std::string> log{};  ///< what it says of it
    bool fails = false;              ///< it was to take them and can not
};
/// Asks the daemon where the command says `--load-format ipc_cache`.
WeightsTaken take_weights(const EngineSetup& setup);

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
