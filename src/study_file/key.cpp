// SPDX-License-Identifier: Apache-2.0
#include "key.hpp"

#include "servetune/value.hpp"

#include <cmath>

namespace servetune {
namespace {

std::string text_of_number(double number) {
    return number == std::floor(number) ? std::to_string(static_cast<std::int64_t>(number))
                                        : text_of(number);
}

/// "", " of at least 1", " in [1, 1000]", " above 0".
std::string bounds_text(const KeyType& type) {
    if (!type.bounded()) return "";
    if (std::isinf(type.high))
        return (type.above_low ? " above " : " of at least ") + text_of_number(type.low);
    return std::string(" in ") + (type.above_low ? "(" : "[") + text_of_number(type.low) + ", " +
           text_of_number(type.high) + (type.below_high ? ")" : "]");
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
        const bool one_word =
            type.form != Form::nothing && type.called.find(' ') == std::string_view::npos;
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

}  // namespace servetune
