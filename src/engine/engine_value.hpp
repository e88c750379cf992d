// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

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

/// The same of a value that a person or a program wrote into a study: 64.0 and "64" are 64 too.
[[nodiscard]] Value meant_value(const EngineParameter& declared, const Value& value);

/// Whether the engine takes `value` in this version. Steps and powers of two are where a search
/// looks, not what the engine takes.
[[nodiscard]] bool engine_takes(const EngineParameter& declared, const Value& value,
                                std::string_view version);

/// What a word behind a switch says; nothing: it belongs to something else.
[[nodiscard]] std::optional<bool> truth_of(const std::string& word);

/// Whether a list is of at least two numbers, each larger than the one before.
[[nodiscard]] bool are_growing_numbers(const std::vector<Value>& values);

}  // namespace servetune
