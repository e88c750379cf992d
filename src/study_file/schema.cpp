// SPDX-License-Identifier: Apache-2.0
#include "schema.hpp"

#include "base/files.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "fact_keys.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

namespace servetune {
namespace {

using Form = KeyType::Form;

using OrderedJson = nlohmann::ordered_json;

/// The tables that a file of each kind begins with; the others are found through them.
constexpr std::array<const KeyType*, 9> file_types{
    &is::keyed<keys::engine>, &is::keyed<keys::workload>, &is::keyed<keys::study>,
    &is::keyed<keys::preset>, &is::keyed<keys::hardware>, &is::keyed<keys::model>,
    &is::keyed<keys::traits>, &is::keyed<keys::kernels>,  &is::keyed<keys::recipes>,
};

OrderedJson number_json(const KeyType& type, double number) {
    if (type.form == KeyType::Form::integer) return std::int64_t(number);
    return number;
}

/// An integer or a number with its bounds.
OrderedJson bounded_json(const KeyType& type) {
    OrderedJson result{{"type", type.form == KeyType::Form::integer ? "integer" : "number"}};
    if (!std::isinf(type.low))
        result[type.above_low ? "exclusiveMinimum" : "minimum"] = number_json(type, type.low);
    if (!std::isinf(type.high)) result["maximum"] = number_json(type, type.high);
    return result;
}

OrderedJson words_json(const KeyType& type) {
    OrderedJson words = OrderedJson::array();
    for (const std::string_view word : type.words) words.push_back(word);
    // `on` and `off` are booleans to editors that read YAML 1.1.
    if (contains(type.words, "on")) words.insert(words.end(), {true, false});
    return {{"enum", words}};
}

/// What a page says of each key in the tables below its headings `### TABLE`: `TABLE.key` -> text.
using Meanings = std::map<std::string, std::string, std::less<>>;
constexpr std::string_view required_mark = " (**required**)";

Meanings meanings_in(const std::string& page) {
    Meanings result;
    std::string table;
    for (const std::string& line : parts_of(page, '\n')) {
        if (line.starts_with("### ")) table = line.substr(4);
        const auto name_ends = line.find("` | ");
        const auto type_ends = line.find(" | ", std::min(name_ends, line.size() - 1) + 4);
        if (!line.starts_with("| `") || !line.ends_with(" |") || type_ends >= line.size() - 2)
            continue;
        std::string text = line.substr(type_ends + 3, line.size() - type_ends - 5);
        if (text.ends_with(required_mark)) text.resize(text.size() - required_mark.size());
        result[table + "." + line.substr(3, name_ends - 3)] = std::move(text);
    }
    return result;
}

std::string key_meaning(const KeyType& table, const Key& key, const Meanings& meanings) {
    const auto* found = entry_in(meanings, std::string(table.table) + "." + std::string(key.name));
    return found == nullptr ? "" : *found;
}

class SchemaWriter {
public:
    explicit SchemaWriter(Meanings meanings) : meanings_(std::move(meanings)) {}

    OrderedJson write(const KeyType& file) {
        OrderedJson schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                           {"title", "servetune " + std::string(file.table)}};
        schema.update(mapping(file));
        OrderedJson definitions = OrderedJson::object();
        // Definitions are added while others are written.
        while (!wanted_.empty()) {
            const KeyType& type = *wanted_.back();
            wanted_.pop_back();
            const std::string name(type.table);
            if (!definitions.contains(name)) definitions[name] = mapping(type);
        }
        if (!definitions.empty()) schema["$defs"] = definitions;
        return schema;
    }

private:
    OrderedJson mapping(const KeyType& type) {
        OrderedJson result{{"type", "object"},
                           {"additionalProperties", false},
                           {"properties", OrderedJson::object()}};
        OrderedJson required_keys = OrderedJson::array();
        bool uses_another = false;
        for (const Key& key : type.keys()) {
            OrderedJson value = of_type(*key.type);
            value["description"] = key_meaning(type, key, meanings_);
            result["properties"][std::string(key.name)] = value;
            if (key.has(required)) required_keys.push_back(key.name);
            uses_another = uses_another || key.name == keys::study.use.name;
        }
        // A file that uses another need not be complete itself.
        if (!required_keys.empty() && uses_another)
            result["anyOf"] =
                OrderedJson::array({{{"required", OrderedJson::array({keys::study.use.name})}},
                                    {{"required", required_keys}}});
        else if (!required_keys.empty()) result["required"] = required_keys;
        return result;
    }

    OrderedJson of_type(const KeyType& type) {
        switch (type.form) {
            case Form::text:
            case Form::share: return {{"type", OrderedJson::array({"string", "number"})}};
            case Form::value:
                return {{"type", OrderedJson::array({"string", "number", "boolean"})}};
            case Form::boolean: return {{"type", "boolean"}};
            case Form::integer:
            case Form::number: return bounded_json(type);
            case Form::duration: return {{"type", "string"}};
            case Form::word: return words_json(type);
            case Form::nothing: return {{"type", "object"}};
            case Form::list: return {{"type", "array"}, {"items", of_element(*type.element)}};
            case Form::mapping:
                return {{"type", "object"}, {"additionalProperties", of_element(*type.element)}};
            case Form::either:
                return {
                    {"anyOf", OrderedJson::array({of_type(*type.element), of_type(*type.other)})}};
            case Form::keyed: break;
        }
        wanted_.push_back(&type);
        return {{"$ref", "#/$defs/" + std::string(type.table)}};
    }

    /// Below free names and in lists `true` is a text as good as any: `environment: {USE_IT:
    /// true}`.
    OrderedJson of_element(const KeyType& type) {
        return of_type(type.form == KeyType::Form::text ? is::value : type);
    }

    Meanings meanings_;
    std::vector<const KeyType*> wanted_{};
};

}  // namespace

std::vector<std::string> schema_kinds() {
    std::vector<std::string> result;
    for (const KeyType* type : file_types) result.emplace_back(type->table);
    return result;
}

std::string json_schema(std::string_view kind, const std::string& page) {
    for (const KeyType* type : file_types)
        if (type->table == kind) return SchemaWriter(meanings_in(page)).write(*type).dump(2) + "\n";
    throw UsageError("there is no schema of '" + std::string(kind) +
                     "'; known: " + listed(nearest_first(kind, schema_kinds())));
}

namespace {

/// The rows of a table of keys, as Markdown.
std::string markdown_table(const KeyType& table, const Meanings& meanings) {
    std::string result = "| key | what | meaning |\n|---|---|---|\n";
    for (const Key& key : table.keys()) {
        result += "| `" + std::string(key.name) + "` | " +
                  replaced_all(key.type->text(), "|", "&#124;") + " | " +
                  key_meaning(table, key, meanings) +
                  std::string(key.has(required) ? required_mark : "") + " |\n";
    }
    return result;
}

}  // namespace

std::string with_key_tables(const std::string& page) {
    const Meanings meanings = meanings_in(page);
    std::string result = page;
    for (const KeyType* table : key_tables()) {
        const std::string heading = "\n### " + std::string(table->table) + "\n\n";
        const auto at = result.find(heading);
        if (at == npos)
            throw ParseError("the page has no heading '### " + std::string(table->table) + "'");
        const auto body = at + heading.size();
        const auto table_begin = result.find("| key |", body);
        const bool there = table_begin < result.find("\n#", body - 1);
        const auto begin = there ? table_begin : body;
        std::size_t end = begin;  // of the rows that stand there
        while (end < result.size() && result[end] == '|') end = result.find('\n', end) + 1;
        result.replace(begin, end - begin, markdown_table(*table, meanings) + (there ? "" : "\n"));
    }
    return result;
}

std::string schema_text(std::string_view kind) {
    const std::string page = read_file(Catalogue::standard().root() / "FORMAT.md");
    return kind == "format" ? with_key_tables(page) : json_schema(kind, page);
}

std::vector<const KeyType*> key_tables() {
    std::vector<const KeyType*> result;
    const auto add = [&](const auto& self, const KeyType& type) -> void {
        if (type.element != nullptr) self(self, *type.element);
        if (type.other != nullptr) self(self, *type.other);
        if (type.form != KeyType::Form::keyed) return;
        const auto same = [&](const KeyType* known) { return known->table == type.table; };
        if (any_of(result, same)) return;
        result.push_back(&type);
        for (const Key& key : type.keys()) self(self, *key.type);
    };
    for (const KeyType* type : file_types) add(add, *type);
    return result;
}

}  // namespace servetune
