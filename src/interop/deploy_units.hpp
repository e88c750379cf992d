// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/command_reader.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace servetune {

/// A flag of a command with its value.
struct FlagUnit {
    std::string
        key{};  ///< the parameter that it sets, a flag of JSON, or the flag; `{model}`, `{launch}`
    std::string flag{};  ///< as the engine file spells it
    std::string value{};
    std::vector<std::string> words{};
    std::size_t begin = 0, end = 0;  ///< words of the command
    bool alone = false;              ///< a flag without a value
    bool dotted = false;             ///< a part of JSON as a flag of its own: `--config.key=1`
    bool not_about_speed = false;
    const EngineParameter* parameter = nullptr;  ///< of the engine that was asked

    [[nodiscard]] const std::string& name() const {
        return key.starts_with("{") || key.starts_with("-") ? key : flag;
    }
    [[nodiscard]] std::string text() const;
};

/// The flags of words that stand behind an engine's program. `reader` knows the engine.
std::vector<FlagUnit> flag_units(const std::vector<std::string>& words, const Engine& engine,
                                 const CommandReader& reader);

/// The model that they name; nothing where they name none.
const FlagUnit* model_unit(const std::vector<FlagUnit>& units);

/// Whether a text is a count of GPUs: at most six digits.
bool is_gpu_count(const std::string& text);

}  // namespace servetune
