// SPDX-License-Identifier: Apache-2.0
#include "key_reader.hpp"

#include "base/files.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/expression.hpp"
#include "study_snapshot.hpp"

#include <cmath>
#include <stdexcept>

namespace servetune {
namespace {

std::string text_of_number(double number) {
    return number == std::floor(number) ? std::to_string(std::int64_t(number)) : text_of(number);
}

/// "", " of at least 1", " in [1, 1000]", " above 0".
std::string bounds_text(const KeyType& type) {
    if (!type.bounded()) return "";
    if (std::isinf(type.high))
        return (type.above_low ? " above " : " of at least ") + text_of_number(type.low);
    return std::string(" in ") + (type.above_low ? "(" : "[") + text_of_number(type.low) + ", " +
           text_of_number(type.high) + "]";
}

std::string words_joined(std::span<const std::string_view> words, const std::string& between,
                         const std::string& last) {
    std::string result;
    for (std::size_t i = 0; i < words.size(); ++i)
        result += (i == 0 ? "" : i + 1 == words.size() ? last : between) + std::string(words[i]);
    return result;
}

/// More than so many keys of a table are not listed.
constexpr std::size_t most_listed = 4;

std::string noun_of(const KeyType& type, bool several) {
    using Form = KeyType::Form;
    const std::string s = several ? "s" : "";
    if (!type.called.empty()) {  // "list of words", but "list of name or file"
        const bool one_word = type.form != Form::nothing && !contains(type.called, ' ');
        return std::string(type.called) + (one_word ? s : "");
    }
    switch (type.form) {
        case Form::integer: return "integer" + s + bounds_text(type);
        case Form::number: return "number" + s + bounds_text(type);
        case Form::word:
            return several ? words_joined(type.words, ", ", " or ")
                           : words_joined(type.words, " | ", " | ");
        case Form::list: return "list" + s + " of " + noun_of(*type.element, true);
        case Form::mapping: return "mapping" + s + " of " + noun_of(*type.element, true);
        case Form::either:
            return noun_of(*type.element, several) + " or " + noun_of(*type.other, several);
        case Form::keyed: {
            if (several || type.keys().size() > most_listed) return "mapping" + s;
            std::string names;
            for (const Key& key : type.keys())
                names += (names.empty() ? "" : ", ") + std::string(key.name);
            return "{" + names + "}";
        }
        case Form::text:
        case Form::value:
        case Form::boolean:
        case Form::share:
        case Form::duration:
        case Form::nothing: break;
    }
    return "text";
}

}  // namespace

std::string KeyType::text() const { return noun_of(*this, false); }

std::string KeyType::wanted_text() const {
    if (!wanted.empty()) return std::string(wanted);
    if (form == Form::word) return words_joined(words, ", ", " or ");
    const std::string noun = noun_of(*this, false);
    return (form == Form::integer ? "an " : "a ") + noun;
}

namespace {

using Form = KeyType::Form;

void check_form(const KeyType& type, std::initializer_list<Form> known) {
    if (!contains(known, type.form))
        throw std::logic_error("a key of type '" + type.text() + "' cannot be read so");
}

bool within(const KeyType& type, double number) {
    return (type.above_low ? number > type.low : number >= type.low) && number <= type.high;
}

bool fits(const KeyType& type, const Yaml& node) {
    return type.form == Form::list                                  ? node.is_sequence()
           : type.form == Form::mapping || type.form == Form::keyed ? node.is_mapping()
                                                                    : node.is_scalar();
}

}  // namespace

std::string text_with_home(const Yaml& node) {
    try {
        return with_home(node.text());
    } catch (const IoError& error) {
        node.fail(error.what());
    }
}

std::filesystem::path path_of(const Yaml& node) {
    const std::filesystem::path result =
        std::filesystem::path(node.file()).parent_path() / text_with_home(node);
    if (node.snapshot() && node.snapshot()->is_outside(result))
        node.fail("there is no file " + result.string());
    return result;
}

void check_text(const KeyType& type, const std::string& text, const Yaml& node) {
    if (type.wrong == nullptr) return;
    if (const std::string why = type.wrong(text); !why.empty()) node.fail(why);
}

void check_not_empty(const KeyType& type, std::size_t size, const Yaml& node) {
    if (type.not_empty && size == 0) node.fail("at least one wanted, got none");
}

void read_as(const KeyType& type, const Yaml& node, std::string& into) {
    check_form(type, {Form::text, Form::word});
    into = node.text();
    if (type.form == Form::word && !contains(type.words, into))
        node.fail_wanted(type.wanted_text());
    if (type.not_empty && into.empty()) node.fail_wanted("a text that is not empty");
    check_text(type, into, node);
}

void read_as(const KeyType& type, const Yaml& node, bool& into) {
    check_form(type, {Form::boolean});
    into = node.boolean();
}

void read_as(const KeyType& type, const Yaml& node, std::int64_t& into) {
    check_form(type, {Form::integer});
    into = node.integer();
    if (!within(type, double(into))) node.fail_wanted(type.wanted_text());
}

void read_as(const KeyType& type, const Yaml& node, double& into) {
    if (type.form == Form::either) {
        const auto words = type.other->words;
        const bool word = node.is_scalar() && contains(words, node.text());
        if (word) into = std::numeric_limits<double>::infinity();
        else read_as(*type.element, node, into);
        return;
    }
    check_form(type, {Form::number, Form::share, Form::duration});
    into = type.form == Form::share    ? node.fraction()
           : type.form == Form::number ? node.real()
                                       : node.seconds();
    if (type.bounded() && !(within(type, into) && std::isfinite(into)))
        node.fail_wanted(type.wanted_text());
}

void read_as(const KeyType& type, const Yaml& node, Value& into) {
    check_form(type, {Form::value});
    into = node.value();
}

void read_as(const KeyType& type, const Yaml& node, std::vector<Condition>& into) {
    check_form(type, {Form::mapping});
    into.clear();
    for (const auto& [parent, values] : node.entries()) into.push_back({parent, values.values()});
}

void read_as(const KeyType& /*type*/, const Yaml& node, Expression& into) {
    try {
        into = parse_expression(node.text());
    } catch (const ParseError& error) {
        node.fail(error.what());
    }
}

void read_as(const KeyType& /*type*/, const Yaml& node, std::filesystem::path& into) {
    into = path_of(node);
}

void read_rows(std::span<const Key> rows, const Yaml& node, void* object, const void* owner) {
    AllErrors errors;
    errors.in([&] { node.check_keys(rows); });
    for (const Key& key : rows) {
        const Yaml* child = key.into == nullptr ? nullptr : node.find(key);
        if (child == nullptr) continue;
        if (key.owner != owner)
            throw std::logic_error("the key '" + std::string(key.name) + "' is of another object");
        errors.in([&] { key.into(*key.type, *child, object); });
    }
    errors.throw_any();
}

const KeyType& alternative(const KeyType& type, const Yaml& node) {
    // Rows of tables stay.
    if (type.form != Form::either) return type;  // NOLINT(bugprone-return-const-ref-from-parameter)
    const KeyType& first = alternative(*type.element, node);
    return fits(first, node) ? first : alternative(*type.other, node);
}

const KeyType& element_of(const KeyType& type, KeyType::Form form) {
    check_form(type, {form});
    return *type.element;
}

}  // namespace servetune
