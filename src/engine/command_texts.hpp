// SPDX-License-Identifier: Apache-2.0
#pragma once

// What of a command is free text: the model and parameters such as names and paths. A search space
// has none of these.

#include "servetune/detail/engine/composition.hpp"

#include <string>
#include <variant>
#include <vector>

namespace servetune {

inline bool is_text(const EngineParameter& declared) { return std::holds_alternative<TextDomain>(declared.parameter.domain); }

/// The word of a command that names the model. Throws UsageError where there is none.
std::string model_word(const Engine& engine, const std::vector<std::string>& words);

/// The values of parameters that take any text, which are taken out of the command: of its words,
/// its JSON flags, its options files.
Assignment take_texts(const Engine& engine, Command& command);

}  // namespace servetune
