// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"
#include "servetune/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
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

/// The program that `#!` of a script names, with what it is to run; empty: it is no script.
[[nodiscard]] std::filesystem::path interpreter_of(const std::filesystem::path& program);
/// Where the Python environment of a program keeps its packages, as far as these folders are there.
[[nodiscard]] std::vector<std::filesystem::path> package_folders(
    const std::filesystem::path& program);

/// The version of an engine that a command starts here, found without starting it: of the Python
/// package that is called like the program or module (`0.11.0`). `path`: in place of $PATH, unless
/// empty. Empty: it is not here, or nothing tells.
[[nodiscard]] std::string installed_version(const std::vector<std::string>& launch,
                                            const std::string& path = "");

/// The same; of a program without one its size and the time it was written, so that another file
/// is seen.
[[nodiscard]] std::string version_or_stamp(const std::vector<std::string>& launch,
                                           const std::string& path = "");

/// The ending of the files that an engine takes as its model, `.gguf`, where its launch flag is an
/// alias of `{model}.gguf`; empty: it takes folders and the ids of a hub.
inline std::string model_ending_of(const Engine& engine) {
    const std::string model = "{model}";
    const auto at = std::find(engine.launch.begin(), engine.launch.end(), model);
    if (at == engine.launch.begin() || at == engine.launch.end()) return "";
    const auto* alias = entry_in(engine.aliases, *(at - 1));
    return alias == nullptr || !alias->starts_with(model) ? "" : alias->substr(model.size());
}

/// What is missing where an engine takes its model as a file and `model` names none: `llama.cpp
/// takes a model as a .gguf file, and Qwen/Qwen3-8B is none`. Empty: nothing is missing.
inline std::string model_file_missing(const Engine& engine, const std::string& model) {
    const std::string ending = model_ending_of(engine);
    if (ending.empty() || model.empty() || lower_case(model).ends_with(ending)) return "";
    return engine.name + " takes a model as a " + ending + " file, and " + model + " is none";
}

}  // namespace servetune
