// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "misbehaviour.hpp"

#include "servetune/detail/perf/engine_core.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace simengine {

/// simengine's own options; they come before the engine's words, or from $SIMENGINE_OPTIONS.
struct Options {
    std::string hardware = "h100-sxm";
    std::string model{};     ///< whose figures, where the command's name for it is not known
    double time_scale = 1;   ///< starts and steps so many times faster
    double start_scale = 0;  ///< starts so many times faster; 0: as time_scale
    std::uint64_t seed = 0;  ///< of noise and answers
    servetune::StepNoise noise{};
    Misbehaviour vices{};
    std::string search_spaces{};  ///< empty: Catalogue::standard()
    std::string
        devices{};  ///< a folder that stands for the machine's devices (claimed_devices.hpp); empty: none are taken
    bool quiet = false;  ///< no log but for what goes wrong
    std::vector<std::string> engine_words{};
};

/// Reads the command line and the environment's options before it. Called as `vllm`, `vllm-router`,
/// `python3`, `trtllm-serve` or `llama-server` (through a link), all words are the engine's.
/// Nothing: it has printed its help or complained, and `exit_code` says how to end.
std::optional<Options> read_command_line(int argc, char** argv, const char* environment_options,
                                         int& exit_code);

}  // namespace simengine
