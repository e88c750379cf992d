// SPDX-License-Identifier: Apache-2.0
#include "engine_value.hpp"

#include "version.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

namespace servetune {
namespace {

bool takes(const Domain& domain, const Value& value) {
    if (std::holds_alternative<TextDomain>(domain))
        return !is_unset(value) && !text_of(value).empty();
    if (const auto* range = std::get_if<IntegerDomain>(&domain)) {
        const auto* integer = std::get_if<std::int64_t>(&value);
        return integer != nullptr && *integer >= range->low && *integer <= range->high;
    }
    return Parameter{"", domain, {}}.contains(value);
}

}  // namespace

std::optional<std::int64_t> suffixed_number(std::string_view text) {
    constexpr std::string_view suffixes = "kmgt";
    if (text.size() < 2) return std::nullopt;
    const char last = text.back();
    const bool binary = last >= 'A' && last <= 'Z';
    const auto power = suffixes.find(static_cast<char>(binary ? last - 'A' + 'a' : last));
    const std::string_view number = text.substr(0, text.size() - 1);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto point = std::find(number.begin(), number.end(), '.');
    const bool whole = point == number.end();
    if (power == std::string_view::npos || (binary && !whole) || point == number.begin() ||
        number.ends_with('.'))
        return std::nullopt;
    if (!std::all_of(number.begin(), point, is_digit) ||
        (!whole && !std::all_of(point + 1, number.end(), is_digit)))
        return std::nullopt;
    const auto counted = real_of(number);
    if (!counted) return std::nullopt;
    const double result =
        std::trunc(*counted * std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1)));
    constexpr double exact = 9007199254740992.0;  // 2^53: beyond, a double is not every integer
    return result <= exact ? std::optional(static_cast<std::int64_t>(result)) : std::nullopt;
}

Value normalized_value(const EngineParameter& declared, Value value) {
    if (const auto same = declared.same_as.find(text_of(value)); same != declared.same_as.end())
        return same->second;
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && declared.suffixes)
        if (const auto number = suffixed_number(*text)) value = *number;
    const auto* whole =
        std::get_if<std::int64_t>(&value);  // `--fraction 1`: a person writes reals without a point
    if (whole != nullptr && std::holds_alternative<RealDomain>(declared.parameter.domain))
        return static_cast<double>(*whole);
    return value;
}

bool are_growing_numbers(const std::vector<Value>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto number = number_of(values[i]);
        if (!number || (i > 0 && *number <= *number_of(values[i - 1]))) return false;
    }
    return values.size() > 1;
}

bool engine_takes(const EngineParameter& declared, const Value& value, std::string_view version) {
    if (is_unset(value)) return declared.parameter.offers_unset;
    if (takes(declared.parameter.domain, value)) return true;
    return declared.also && version_within(version, declared.also->since, "") &&
           takes(declared.also->domain, value);
}
namespace {

/// One part of a form: the parameter, and the text in front of it.
struct FormPart {
    std::string before;
    std::string name;
};

/// The parts of a form, and last the text behind them, without a name.
std::vector<FormPart> form_parts_of(std::string_view form) {
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    std::vector<FormPart> parts{{}};
    for (std::size_t at = 0; at < form.size(); ++at) {
        const std::size_t end =
            form[at] == '{' ? form.find_first_not_of(letters, at + 1) : std::string_view::npos;
        if (end != std::string_view::npos && end > at + 1 && form[end] == '}') {
            parts.back().name = form.substr(at + 1, end - at - 1);
            parts.emplace_back();
            at = end;
        } else if (form[at] != ' ') parts.back().before += form[at];
    }
    return parts;
}

}  // namespace

std::vector<std::string> names_in_form(std::string_view form) {
    std::vector<std::string> names;
    for (const FormPart& part : form_parts_of(form))
        if (!part.name.empty() && std::find(names.begin(), names.end(), part.name) == names.end())
            names.push_back(part.name);
    return names;
}

std::string filled_form(std::string_view form, const std::map<std::string, std::string>& texts) {
    std::string result;
    for (const FormPart& part : form_parts_of(form))
        result += part.before + (part.name.empty() ? "" : texts.at(part.name));
    return result;
}

std::optional<std::map<std::string, std::string>> values_in_form(std::string_view form,
                                                                 std::string_view text) {
    std::map<std::string, std::string> values;
    const std::vector<FormPart> parts = form_parts_of(form);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!text.starts_with(parts[i].before)) return std::nullopt;
        text.remove_prefix(parts[i].before.size());
        if (parts[i].name.empty()) break;
        const std::string value(text.substr(0, text.find_first_of(",]}")));
        text.remove_prefix(value.size());
        const auto [known, is_new] = values.emplace(parts[i].name, value);
        if (value.empty() || (!is_new && known->second != value)) return std::nullopt;
    }
    return text.empty() ? std::optional(values) : std::nullopt;
}

void remove_keys(JsonFlag& flag, const std::function<bool(const std::string&)>& is_gone) {
    std::set<std::string> gone;
    for (const auto& [key, name] : flag.fields)
        if (is_gone(name)) gone.insert(key);
    std::erase_if(flag.fields, [&](const auto& field) { return gone.contains(field.first); });
    std::erase_if(flag.forms, [&](const auto& form) { return gone.contains(form.first); });
}

}  // namespace servetune
