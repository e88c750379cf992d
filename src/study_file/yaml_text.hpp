// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "yaml.hpp"

#include <nlohmann/json_fwd.hpp>

namespace servetune {

/// A scalar of YAML that reads as this text and nothing else, in our files and by YAML 1.1's rules:
/// quoted where that is needed, `${` doubled. Bytes that are not UTF-8 become U+FFFD.
std::string yaml_text(const std::string& text);

/// The same in double quotes, `${` as it is: what YAML does not call printable and what YAML 1.1
/// takes for a line end (NEL, U+2028) is escaped.
std::string yaml_quoted(const std::string& text);

/// A mapping as a document of YAML, its keys in order. What holds lists or mappings of its own
/// stands in lines below its key, the rest in one line. null is `engine`: no flag is passed.
std::string yaml_document(const nlohmann::ordered_json& mapping);

/// Whether a name is that of a YAML file and not of something that such a file is about.
inline bool names_yaml_file(std::string_view name) noexcept {
    return name.ends_with(".yaml") || name.ends_with(".yml");
}

/// The same of a file with the facts of a model, in YAML or as its publisher wrote it.
inline bool names_model_file(std::string_view name) noexcept {
    return names_yaml_file(name) || name.ends_with("config.json");
}

/// A file of another program's as JSON text: `true` and `3` are no texts, unless they are quoted.
/// Throws ParseError for a word that YAML 1.1 and 1.2 read differently (`on`, `yes`, `0444`):
/// nobody knows which one is meant.
[[nodiscard]] std::string json_text_of(const Yaml& node);

}  // namespace servetune
