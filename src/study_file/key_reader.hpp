// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/expression.hpp"
#include "servetune/parameter.hpp"
#include "yaml.hpp"

#include <map>

namespace servetune {

// Reading by the type of a key: its form, its bounds and its words stand in the table and nowhere
// else. Each throws ParseError that says what was wanted and what stands there. A target that the
// key's type cannot fill is a mistake of the program: std::logic_error.

void read_as(const KeyType& type, const Yaml& node, std::string& into);
void read_as(const KeyType& type, const Yaml& node, bool& into);
void read_as(const KeyType& type, const Yaml& node, std::int64_t& into);
/// A number, a share, the seconds of a duration; of `either`, infinity for a word.
void read_as(const KeyType& type, const Yaml& node, double& into);
void read_as(const KeyType& type, const Yaml& node, Value& into);
void read_as(const KeyType& type, const Yaml& node, std::vector<Condition>& into);
void read_as(const KeyType& type, const Yaml& node, Expression& into);
/// A file that a file names: beside it, `~` expanded.
void read_as(const KeyType& type, const Yaml& node, std::filesystem::path& into);
std::filesystem::path path_of(const Yaml& node);
/// A text that may be a path: `~` and `~user` at its start expanded.
std::string text_with_home(const Yaml& node);

/// Reads the rows of a mapping that are bound to members of an object, all of them whatever is
/// wrong with one. `owner`: `owner_id` of the object's type.
void read_rows(std::span<const Key> rows, const Yaml& node, void* object, const void* owner);

template <class Table, class Object>
void read_table(const Yaml& node, const Table& table, Object& object) {
    const auto rows = rows_of(table);
    read_rows(rows, node, &object, &owner_id<Object>);
}

template <class Integer>
requires(std::is_integral_v<Integer>) void read_as(const KeyType& type, const Yaml& node,
                                                   Integer& into) {
    std::int64_t integer = 0;
    read_as(type, node, integer);
    into = static_cast<Integer>(integer);
}

/// An object whose members are bound to the rows of a table.
template <class Object>
requires(std::is_aggregate_v<Object>) void read_as(const KeyType& type, const Yaml& node,
                                                   Object& into) {
    read_rows(type.keys(), node, &into, &owner_id<Object>);
}

template <class Read>
void read_as(const KeyType& type, const Yaml& node, std::optional<Read>& into);

/// The alternative of `either` that a node is read by: the one that is a list for a list, a mapping
/// for a mapping; any other type is its own.
const KeyType& alternative(const KeyType& type, const Yaml& node);
/// What a list or a mapping has for elements. Throws std::logic_error for any other type.
const KeyType& element_of(const KeyType& type, KeyType::Form form);
/// Throws ParseError where a text, or the name in a mapping of what stands at `node`, is none of
/// this type.
void check_text(const KeyType& type, const std::string& text, const Yaml& node);
void check_not_empty(const KeyType& type, std::size_t size, const Yaml& node);

template <class Read, class Order>
void read_as(const KeyType& type, const Yaml& node, std::map<std::string, Read, Order>& into);

/// A list; where the type allows one element without a list, that one.
template <class Read>
void read_as(const KeyType& type, const Yaml& node, std::vector<Read>& into) {
    const KeyType& chosen = alternative(type, node);
    into.clear();
    if (type.form == KeyType::Form::either && chosen.form != KeyType::Form::list)
        return read_as(chosen, node, into.emplace_back());
    for (const Yaml& item : node.items())
        read_as(element_of(chosen, KeyType::Form::list), item, into.emplace_back());
    check_not_empty(chosen, into.size(), node);
}

/// A mapping with free names.
template <class Read, class Order>
void read_as(const KeyType& type, const Yaml& node, std::map<std::string, Read, Order>& into) {
    into.clear();
    const KeyType& chosen = alternative(type, node);
    for (const auto& [name, value] : node.entries()) {
        check_text(chosen, name, value);
        read_as(element_of(chosen, KeyType::Form::mapping), value, into[name]);
    }
    check_not_empty(chosen, into.size(), node);
}

template <class Read>
void read_as(const KeyType& type, const Yaml& node, std::optional<Read>& into) {
    Read read{};
    read_as(type, node, read);
    into = std::move(read);
}

/// What stands under a key of a mapping; without the key `into` stays as it is.
template <class Read>
void read(const Yaml& mapping, const Key& key, Read& into) {
    if (const Yaml* node = mapping.find(key)) read_as(*key.type, *node, into);
}

/// The same, of a key that must be there.
template <class Read>
Read read(const Yaml& mapping, const Key& key) {
    Read result{};
    read_as(*key.type, mapping.at(key), result);
    return result;
}

template <const auto& names, class Meaning>
void read_word_as(const Yaml& node, Meaning& into) {
    std::string word;
    read_as(is::one_of<names>, node, word);
    for (const auto& [meaning, name] : names)
        if (name == word) into = meaning;
}

/// What one of the words under a key stands for: `read_word<on_off>(node, keys::deploy.watch, on)`,
/// for a key that is::one_of<on_off>.
template <const auto& names, class Meaning>
void read_word(const Yaml& mapping, const Key& key, Meaning& into) {
    if (const Yaml* node = mapping.find(key)) read_word_as<names>(*node, into);
}

// Rows of tables that are bound to a member, or to a member of a member, of the object that is
// read: `row<&Budget::trials>("trials", is::integer_from<1>)`.

template <class Owner, class Member>
Owner owner_of_member(Member Owner::*);

template <auto first, auto... rest>
constexpr Key row(std::string_view name, const KeyType& type, KeyMark marks = optional_key) {
    using Owner = decltype(owner_of_member(first));
    Key key(name, type, marks);
    key.into = [](const KeyType& as, const Yaml& node, void* object) {
        read_as(as, node, ((static_cast<Owner*>(object)->*first).*....*rest));
    };
    key.owner = &owner_id<Owner>;
    return key;
}

/// The same of a word that stands for a meaning (`is::one_of<names>`).
template <const auto& names, auto first, auto... rest>
constexpr Key word_row(std::string_view name, KeyMark marks = optional_key) {
    using Owner = decltype(owner_of_member(first));
    Key key(name, is::one_of<names>, marks);
    key.into = [](const KeyType&, const Yaml& node, void* object) {
        read_word_as<names>(node, ((static_cast<Owner*>(object)->*first).*....*rest));
    };
    key.owner = &owner_id<Owner>;
    return key;
}

/// Rows of a table whose key, member of the table and member of `T`, the object that is read, have
/// one name: `BOUND_KEY(trials, is::integer_from<1>)`. A free key is bound to nothing.
#define FREE_KEY(name, ...) \
    Key name { #name, __VA_ARGS__ }
#define BOUND_KEY(name, ...) Key name = row<&T::name>(#name, __VA_ARGS__)
#define WORD_KEY(name, words, ...) \
    Key name = word_row<words, &T::name>(#name __VA_OPT__(, ) __VA_ARGS__)

}  // namespace servetune
