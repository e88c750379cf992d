// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// The flags that a help text lists, as argparse, click and llama.cpp write it: on lines that begin
/// with one, all spellings up to the description (`--foo FOO, -f FOO`, `--on / --off`, `-fa,
/// --flash-attn [on|off|auto]`). Lines with one of `of_removed` (`Engine::help_of_removed`) are
/// left out. Of a pair `--enable-x, --disable-x` the older `--no-enable-x` is among them though no
/// help lists it; of `--disable-x, --enable-x` it is `--no-disable-x`.
std::set<std::string> flags_in_help(std::string_view text,
                                    const std::vector<std::string>& of_removed = {});

/// What an engine is given to answer.
struct HelpLimits {
    /// Per command. Zero: a fifth of what a start of the engine may take, at least 60 s; engines
    /// that import PyTorch first took up to 35 s on two busy cores, without bytecode over 60 s.
    std::chrono::milliseconds time{0};
    std::size_t output_bytes =
        4UL << 20UL;  ///< more is no help text: 60 KB is llama.cpp's, with 258 flags
};

/// What the engine that is installed on this machine says of its own flags.
struct InstalledFlags {
    std::string command;            ///< what was asked: `vllm serve --help=all`
    std::set<std::string> flags{};  ///< empty: it could not be asked
    std::string why_not{};          ///< then: one sentence
};

/// Runs the program of `engine.launch` with the words of `engine.help`, one after the other until
/// an answer lists the flags of `launch` (else it is only a part of the help). Never through a
/// shell; the whole process group has ended when this returns.
InstalledFlags installed_flags(const Engine& engine, HelpLimits limits = {});

}  // namespace servetune
