// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "placed_text.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// A node of a YAML file that knows where it stands. Aliases are not followed.
struct YamlNode {
    enum class Kind { null, scalar, sequence, mapping, alias };
    Kind kind = Kind::null;
    std::string text{};  ///< of a scalar
    std::string tag{};
    bool flow = false;       ///< a list or mapping in brackets
    bool shared = false;     ///< an alias leads to it, or to what it stands in
    std::size_t anchor = 0;  ///< its number; of an alias that of its target; 0: none
    std::size_t begin = 0;   ///< byte of the file, behind anchor and tag
    std::vector<std::pair<YamlNode, YamlNode>> entries{};
    std::vector<YamlNode> items{};

    [[nodiscard]] const YamlNode* find(std::string_view key) const;
    /// The text of a scalar below this key; empty: none.
    [[nodiscard]] std::string text_of(std::string_view key) const;
    /// Each scalar below it with its path: two files that give the same say the same.
    void flatten(const std::string& path, std::map<std::string, std::string>& into) const;
};

/// How a path names an item: by its `name`, where no other item has that, else by its number.
std::string item_name(const YamlNode& list, std::size_t i);

/// The documents of a file of at most 1 MiB. Throws ParseError: no YAML, a key twice in one
/// mapping, more than 100 deep.
std::vector<YamlNode> yaml_documents(std::string_view file);

/// The text of a scalar with its places. Throws ParseError where its form in the file is too
/// special to be followed (escapes such as \u, a blank that is folded away).
PlacedText placed_scalar(std::string_view file, const YamlNode& scalar);
/// The scalar as an item of a list or a value of a mapping.
FileWord scalar_word(std::string_view file, const YamlNode& scalar, bool in_flow);

}  // namespace servetune
