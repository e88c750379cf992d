// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "yaml.hpp"

#include <string>

namespace servetune {

/// A file of another program's as JSON text: `true` and `3` are no texts, unless they are quoted.
/// Throws ParseError for a word that YAML 1.1 and 1.2 read differently (`on`, `yes`, `0444`):
/// nobody knows which one is meant.
[[nodiscard]] std::string json_text_of(const Yaml& node);

}  // namespace servetune
