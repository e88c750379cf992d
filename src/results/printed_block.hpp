// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/result_file.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The command of a text that starts an engine.
struct ServingCommand {
    std::string text{};            ///< its environment and words; empty: there is none
    std::string engine{};          ///< in lower case
    std::string not_recognised{};  ///< why there is none
};

/// The only command of a shell text, by what the engine files say (`launch`, `started_as`). Before
/// it may stand `$ ` and `NAME=value`, which stays in front of it unless it changes no measurement
/// (devices, tokens of hubs, logging). None is taken where a word is known only where it runs,
/// where settings are in a file, or where anything else stands beside it.
ServingCommand serving_command(std::string_view text, const std::vector<Engine>& engines);

/// The "Serving Benchmark Result" blocks of a text, which may have lost its line breaks, with the
/// commands directly above them.
std::vector<PublishedResult> read_printed_blocks(std::string_view text,
                                                 const std::vector<Engine>& engines);

/// The figures between the title and the last rule of a block: each `label: value` pair, whatever
/// separates the pairs. All labels that vLLM, SGLang and GPUStack print; others go to `unread`.
void read_block(std::string_view block, PublishedResult& into);

}  // namespace servetune
