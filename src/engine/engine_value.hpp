// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The whole number that text such as 8k (8000), 8K (8192) or 25.6k stands for: k, m, g, t count in
/// thousands, K, M, G, T in 1024s and take no decimals (vLLM 0.33: vllm/utils/argparse_utils.py).
/// Nothing where it is none.
[[nodiscard]] std::optional<std::int64_t> suffixed_number(std::string_view text);

/// What the engine makes of a value: 8K is 8192 where it takes suffixes, `auto` is the value that
/// it stands for (`EngineParameter::same_as`), 1 is 1.0 for a real. Others stay as they are.
[[nodiscard]] Value normalized_value(const EngineParameter& declared, Value value);

/// Whether the engine takes `value` in this version. Steps and powers of two are where a search
/// looks, not what the engine takes.
[[nodiscard]] bool engine_takes(const EngineParameter& declared, const Value& value,
                                std::string_view version);

/// Whether a list is of at least two numbers, each larger than the one before.
[[nodiscard]] bool are_growing_numbers(const std::vector<Value>& values);

/// The parameters that a form names: a JSON text with {parameter} in it, such as
/// `[[1, 1, {few}], [{many}, {many}, 0]]`. In their order, each once.
std::vector<std::string> names_in_form(std::string_view form);

/// The form with a JSON text for each of its parameters.
std::string filled_form(std::string_view form, const std::map<std::string, std::string>& texts);

/// What a JSON text without blanks has in the places of a form. Nothing where it is of another
/// form, or has two values for one parameter.
std::optional<std::map<std::string, std::string>> values_in_form(std::string_view form,
                                                                 std::string_view text);

/// Removes the keys that need a parameter which is gone.
void remove_keys(JsonFlag& flag, const std::function<bool(const std::string&)>& is_gone);

}  // namespace servetune
