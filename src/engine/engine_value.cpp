// SPDX-License-Identifier: Apache-2.0
#include "engine_value.hpp"

#include "base/text.hpp"
#include "study/plain_value.hpp"
#include "version.hpp"

#include <algorithm>
#include <cmath>
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
    if (power == npos || (binary && !whole) || point == number.begin() || number.ends_with('.'))
        return std::nullopt;
    if (!std::all_of(number.begin(), point, is_digit) ||
        (!whole && !std::all_of(point + 1, number.end(), is_digit)))
        return std::nullopt;
    const auto counted = real_of(number);
    if (!counted) return std::nullopt;
    const double result =
        std::trunc(*counted * std::pow(binary ? 1024.0 : 1000.0, double(power + 1)));
    constexpr double exact = 9007199254740992.0;  // 2^53: beyond, a double is not every integer
    return result <= exact ? std::optional(std::int64_t(result)) : std::nullopt;
}

std::optional<bool> truth_of(const std::string& word) {
    const std::string low = lower_case(word);
    for (const char* yes : {"true", "on", "yes", "1"})
        if (low == yes) return true;
    for (const char* no : {"false", "off", "no", "0"})
        if (low == no) return false;
    return std::nullopt;
}

Value normalized_value(const EngineParameter& declared, Value value) {
    if (const auto* same = entry_in(declared.same_as, text_of(value))) return *same;
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && declared.suffixes)
        if (const auto number = suffixed_number(*text)) value = *number;
    if (std::holds_alternative<BoolDomain>(declared.parameter.domain))  // True, yes, 1
        if (const auto truth = truth_of(text_of(value))) return *truth;
    const auto* whole =
        std::get_if<std::int64_t>(&value);  // `--fraction 1`: a person writes reals without a point
    if (whole != nullptr && std::holds_alternative<RealDomain>(declared.parameter.domain))
        return double(*whole);
    return value;
}

Value meant_value(const EngineParameter& declared, const Value& value) {
    Value normalized = normalized_value(declared, value);
    if (engine_takes(declared, normalized, "")) return normalized;
    return as_parameter_has_it(declared.parameter,
                               normalized_value(declared, plain_value(std::move(normalized))));
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

}  // namespace servetune
