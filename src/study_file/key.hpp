// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/variable_name.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace servetune {

struct Key;

/// What may stand under a key. The types below are the values of this; study_file/key_reader.hpp
/// reads by them, `autotune schema` writes them as JSON Schema.
struct KeyType {
    enum class Form {
        text,      ///< any scalar, as text
        value,     ///< a scalar as a parameter's value: true, 3, 0.5, text
        boolean,   ///< true or false
        integer,   ///< within the bounds
        number,    ///< within the bounds; a bounded one is finite
        share,     ///< 1% or 0.01
        duration,  ///< 500ms, 90s, 20min, 8h, 2d
        word,      ///< one of `words`
        nothing,   ///< {}
        list,      ///< of `element`
        mapping,   ///< whose names are free, each of `element`
        keyed,     ///< a mapping with the keys of a table
        either     ///< `element` or `other`
    };
    Form form{};
    std::string_view called{};  ///< in place of the words that `text` would find
    std::string_view wanted{};  ///< in place of the words that `wanted_text` would find
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool above_low = false;                     ///< `low` itself is refused
    std::span<const std::string_view> words{};  ///< of a word
    const KeyType* element = nullptr;           ///< of a list and a mapping; of either, the first
    const KeyType* other = nullptr;             ///< of either, the second
    std::string_view table{};                   ///< of keyed, the table's name
    std::span<const Key> (*keys)() = nullptr;   ///< of keyed, its rows
    /// What is wrong with a text, or with a name in a mapping; empty: nothing. Null: any will do.
    std::string (*wrong)(const std::string&) = nullptr;
    bool not_empty = false;  ///< a text has characters; a list or a mapping has elements

    [[nodiscard]] bool bounded() const {
        return low > -std::numeric_limits<double>::infinity() ||
               high < std::numeric_limits<double>::infinity();
    }
    /// For the tables of a document: "integer of at least 1", "list of text", "on | off".
    [[nodiscard]] std::string text() const;
    /// Of a scalar, for "... wanted, got": "an integer of at least 1", "on or off".
    [[nodiscard]] std::string wanted_text() const;
};

/// What else is known of a key; several are joined by `|`.
enum KeyMark : unsigned {
    optional_key = 0,
    required = 1,
    resolved = 2,    ///< the study's definition has what it comes to, with everything below it
    ignored = 4,     ///< changes neither what is asked nor what is measured: the same study
    short_form = 8,  ///< a study may have its value in place of the whole mapping
    of_flag = 16,    ///< of a parameter: how or when a command has it
    of_engine = 32,  ///< of a parameter of an engine: its file says this, and no study can
};
constexpr KeyMark operator|(KeyMark a, KeyMark b) {
    return static_cast<KeyMark>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

class Yaml;

/// Of a parameter that a command has: the engine's file says it.
constexpr KeyMark of_engine_flag = of_flag | of_engine;

/// A key that a mapping may have: one row of a table (keys.hpp). What it means says
/// search_spaces/FORMAT.md, which the schemas take it from. A row that is bound to a member
/// (`row`, key_reader.hpp) is read by `read_table` alone.
struct Key {
    std::string_view name;
    const KeyType* type;
    KeyMark marks;
    /// Reads what stands under the key into the member of an `*owner`; null: a reader does it.
    void (*into)(const KeyType& type, const Yaml& node, void* object) = nullptr;
    const void* owner = nullptr;  ///< `owner_id` of the object's type

    constexpr Key(std::string_view name_of_key, const KeyType& what, KeyMark known = optional_key)
        : name(name_of_key), type(&what), marks(known) {}
    [[nodiscard]] constexpr bool has(KeyMark mark) const { return (marks & mark) != 0; }
};

/// A value of its own for each type.
template <class Owner>
inline constexpr char owner_id = 0;

/// The rows of a table. A table is an object whose members are keys and nothing else, so a reader
/// names a key as a member, and a key that the table does not have cannot be named.
template <class Table>
auto rows_of(const Table& table) {
    static_assert(std::is_trivially_copyable_v<Table> && sizeof(Table) % sizeof(Key) == 0,
                  "a table has keys only");
    return std::bit_cast<std::array<Key, sizeof(Table) / sizeof(Key)>>(table);
}

/// The same, kept as long as the program runs.
template <const auto& table>
std::span<const Key> kept_rows_of() {
    static const auto rows = rows_of(table);
    return rows;
}

constexpr std::string_view word_in(std::string_view word) { return word; }
template <class Named>
constexpr std::string_view word_in(const std::pair<Named, std::string_view>& row) {
    return row.second;
}
template <const auto& names>
inline constexpr auto words_in = [] {
    std::array<std::string_view, names.size()> result;
    for (std::size_t i = 0; i < names.size(); ++i) result[i] = word_in(names[i]);
    return result;
}();

/// The types of keys: `Key{"model", is::text}`.
namespace is {

using Form = KeyType::Form;

inline constexpr KeyType text{Form::text};
inline constexpr KeyType word{Form::text, "word"};
inline constexpr KeyType name{Form::text, "name"};
inline constexpr KeyType path{Form::text, "path"};
inline constexpr KeyType file{Form::text, "file"};
inline constexpr KeyType folder_or_file{Form::text, "folder or file"};
inline constexpr KeyType name_or_file{Form::text, "name or file"};
inline constexpr KeyType dotted_path{Form::text, "dotted path"};
inline constexpr KeyType url{Form::text, "url"};
inline constexpr KeyType version{Form::text, "version"};
inline constexpr KeyType expression{Form::text, "expression"};
inline constexpr KeyType metric{Form::text, "metric"};
inline constexpr KeyType time_of_day{Form::text, "HH:MM"};
/// The name of an environment variable, and a mapping from such names.
inline constexpr KeyType variable{.form = Form::text, .wrong = wrong_with_variable};
inline constexpr KeyType variables{
    .form = Form::mapping, .element = &text, .wrong = wrong_with_variable};

inline constexpr KeyType value{Form::value, "value"};
inline constexpr KeyType boolean{Form::boolean, "bool"};
inline constexpr KeyType nothing{Form::nothing, "{}"};

inline constexpr KeyType integer{Form::integer};
template <std::int64_t low>
inline constexpr KeyType integer_from{Form::integer, {}, {}, low};
template <std::int64_t low, std::int64_t high>
inline constexpr KeyType integer_in{Form::integer, {}, {}, low, high};

inline constexpr KeyType number{Form::number};
inline constexpr KeyType positive{
    Form::number, {}, "a positive number", 0, std::numeric_limits<double>::infinity(), true};
template <std::int64_t low>
inline constexpr KeyType number_from{Form::number, {}, {}, low};
template <std::int64_t low, std::int64_t high>
inline constexpr KeyType number_in{Form::number, {}, {}, low, high};
inline constexpr KeyType efficiency{Form::number, {}, "a share: more than 0, at most 1", 0, 1,
                                    true};

inline constexpr KeyType share{Form::share, "share"};
inline constexpr KeyType duration{Form::duration, "duration"};
inline constexpr KeyType positive_duration{
    Form::duration, "duration above 0", {}, 0, std::numeric_limits<double>::infinity(), true};

/// One word of an array of words, or of pairs (meaning, word).
template <const auto& names>
inline constexpr KeyType one_of{.form = Form::word, .words = words_in<names>};
template <const KeyType& element>
inline constexpr KeyType list_of{.form = Form::list, .element = &element};
/// The same type with something in it.
template <const KeyType& type>
inline constexpr KeyType some = [] {
    KeyType result = type;
    result.not_empty = true;
    return result;
}();
/// The same type, of which `what` says what is wrong with a text.
template <const KeyType& type, auto what>
inline constexpr KeyType checked = [] {
    KeyType result = type;
    result.wrong = what;
    return result;
}();
/// The names are free.
template <const KeyType& element>
inline constexpr KeyType mapping_of{.form = Form::mapping, .element = &element};
template <const KeyType& first, const KeyType& second>
inline constexpr KeyType either{.form = Form::either, .element = &first, .other = &second};
/// A mapping with the keys of this table.
template <const auto& table>
inline constexpr KeyType keyed{
    .form = Form::keyed, .table = table.called, .keys = &kept_rows_of<table>};

}  // namespace is
}  // namespace servetune
