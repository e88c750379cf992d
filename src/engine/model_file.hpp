// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"
#include "servetune/engine.hpp"

#include <algorithm>
#include <string>

namespace servetune {

/// The ending of the files that an engine takes as its model, `.gguf`, where its launch flag is an
/// alias of `{model}.gguf`; empty: it takes folders and the ids of a hub.
inline std::string model_ending_of(const Engine& engine) {
    const std::string model = "{model}";
    const auto at = std::find(engine.launch.begin(), engine.launch.end(), model);
    if (at == engine.launch.begin() || at == engine.launch.end()) return "";
    const auto alias = engine.aliases.find(*(at - 1));
    return alias == engine.aliases.end() || !alias->second.starts_with(model)
               ? ""
               : alias->second.substr(model.size());
}

/// What is missing where an engine takes its model as a file and `model` names none: `llama.cpp
/// takes a model as a .gguf file, and Qwen/Qwen3-8B is none`. Empty: nothing is missing.
inline std::string model_file_missing(const Engine& engine, const std::string& model) {
    const std::string ending = model_ending_of(engine);
    if (ending.empty() || model.empty() || lower_case(model).ends_with(ending)) return "";
    return engine.name + " takes a model as a " + ending + " file, and " + model + " is none";
}

/// Another flag that takes a hub's repository of such files; empty: none is known.
inline std::string hub_flag_of(const Engine& engine) {
    for (const auto& [alias, meant] : engine.aliases)
        if (meant == "{model}") return alias;
    return "";
}

}  // namespace servetune
