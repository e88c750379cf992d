// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "key.hpp"
#include "yaml.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace servetune {

// Reading by the type of a key: its form, its bounds and its words stand in the table and nowhere
// else. Each throws ParseError that says what was wanted and what stands there. A target that the
// key's type cannot fill is a mistake of the program: std::logic_error.

void read_as(const KeyType& type, const Yaml& node, std::string& into);   ///< text, word
void read_as(const KeyType& type, const Yaml& node, bool& into);          ///< boolean
void read_as(const KeyType& type, const Yaml& node, std::int64_t& into);  ///< integer
void read_as(const KeyType& type, const Yaml& node,
             double& into);  ///< number, share, seconds of a duration
void read_as(const KeyType& type, const Yaml& node, Value& into);  ///< value

/// An integer into a type that holds the bounds of its key.
template <class Integer>
requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool> &&
         !std::is_same_v<Integer, std::int64_t>) void read_as(const KeyType& type, const Yaml& node,
                                                              Integer& into) {
    std::int64_t integer = 0;
    read_as(type, node, integer);
    into = static_cast<Integer>(integer);
}

template <class Read>
void read_as(const KeyType& type, const Yaml& node, std::optional<Read>& into) {
    Read read{};
    read_as(type, node, read);
    into = std::move(read);
}

/// The alternative of `either` that a node is read by: the one that is a list for a list, a mapping
/// for a mapping; any other type is its own.
const KeyType& alternative(const KeyType& type, const Yaml& node);
/// What a list or a mapping has for elements. Throws std::logic_error for any other type.
const KeyType& element_of(const KeyType& type, KeyType::Form form);

/// A list; where the type allows one element without a list, that one.
template <class Read>
void read_as(const KeyType& type, const Yaml& node, std::vector<Read>& into) {
    const KeyType& chosen = alternative(type, node);
    const bool one = type.form == KeyType::Form::either && chosen.form != KeyType::Form::list;
    into.clear();
    if (one) {
        read_as(chosen, node, into.emplace_back());
        return;
    }
    for (const Yaml& item : node.items())
        read_as(element_of(chosen, KeyType::Form::list), item, into.emplace_back());
}

/// Throws ParseError where a text, or the name in a mapping of what stands at `node`, is none of
/// this type.
void check_text(const KeyType& type, const std::string& text, const Yaml& node);

/// A mapping with free names.
template <class Read, class Order>
void read_as(const KeyType& type, const Yaml& node, std::map<std::string, Read, Order>& into) {
    into.clear();
    const KeyType& chosen = alternative(type, node);
    for (const auto& [name, value] : node.entries()) {
        check_text(chosen, name, value);
        read_as(element_of(chosen, KeyType::Form::mapping), value, into[name]);
    }
}

/// What stands under a key of a mapping; without the key `into` stays as it is.
template <class Read>
void read(const Yaml& mapping, const Key& key, Read& into) {
    if (const Yaml* node = mapping.find(key)) read_as(*key.type, *node, into);
}

/// The same, of a key that must be there (check_keys has seen to it).
template <class Read>
Read read(const Yaml& mapping, const Key& key) {
    Read result{};
    read_as(*key.type, mapping.at(key), result);
    return result;
}

/// What one of the words under a key stands for: `read_word<on_off>(node, keys::deploy.watch, on)`,
/// for a key that is::one_of<on_off>.
template <const auto& names, class Meaning>
void read_word(const Yaml& mapping, const Key& key, Meaning& into) {
    std::string word;
    read(mapping, key, word);
    for (const auto& [meaning, name] : names)
        if (name == word) into = meaning;
}

}  // namespace servetune
