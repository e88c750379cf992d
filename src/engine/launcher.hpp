// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The file name of a program: `vllm` of `/opt/bin/vllm`.
[[nodiscard]] inline std::string_view program_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

/// The words of `launch` before its first flag or blank: `python3 -m sglang.launch_server`.
[[nodiscard]] std::vector<std::string> launcher_words(const Engine& engine);

/// An engine that words of a command start.
struct Launched {
    const Engine* engine = nullptr;  ///< null: they start none
    std::size_t words = 0;           ///< how many of them name the program
};

/// Which engine the words at `at` start, by `launch` and `started_as`; the longest match counts.
/// The folder of a program does not matter, nor which Python runs it.
[[nodiscard]] Launched launched_at(std::span<const Engine> engines,
                                   const std::vector<std::string>& words, std::size_t at);

/// The engine whose container image a word names, whatever its registry and tag; null: none.
[[nodiscard]] const Engine* engine_of_image(std::span<const Engine> engines, std::string_view word);

}  // namespace servetune
