// SPDX-License-Identifier: Apache-2.0
// Values and configurations as JSON: in journals, `--json`, ask-tell, requests of the command
// evaluator and option files.
#pragma once

#include "servetune/configuration.hpp"

#include <nlohmann/json.hpp>

namespace servetune {

/// null is Unset.
inline nlohmann::ordered_json to_json(const Value& value) {
    struct {
        nlohmann::ordered_json operator()(Unset) const { return nullptr; }
        nlohmann::ordered_json operator()(bool b) const { return b; }
        nlohmann::ordered_json operator()(std::int64_t i) const { return i; }
        nlohmann::ordered_json operator()(double d) const { return d; }
        nlohmann::ordered_json operator()(const std::string& s) const { return s; }
    } visitor;
    return std::visit(visitor, value);
}

inline nlohmann::ordered_json to_json(const Configuration& configuration) {
    auto result = nlohmann::ordered_json::object();
    for (const auto& [name, value] : configuration.entries()) result[name] = to_json(value);
    return result;
}

/// Nothing for an array or an object. Integers and reals stay apart: `3` is an integer, `3.0` a
/// real.
template <class Json>
std::optional<Value> value_from_json(const Json& json) {
    if (json.is_null()) return Unset{};
    if (json.is_boolean()) return json.template get<bool>();
    if (json.is_number_unsigned() && json.template get<std::uint64_t>() > INT64_MAX)
        return json.template get<double>();
    if (json.is_number_integer()) return json.template get<std::int64_t>();
    if (json.is_number()) return json.template get<double>();
    if (json.is_string()) return json.template get<std::string>();
    return std::nullopt;
}

}  // namespace servetune
