// SPDX-License-Identifier: Apache-2.0
#include "yaml_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// A quoted word is a text by its value; a plain one may be what only one of the versions of YAML
/// reads as a boolean or an octal number (yaml.org/type/bool.html, int.html; YAML 1.2.2, 10.3.2).
OrderedJson scalar_json(const Yaml& node) {
    const Value value = node.value();
    if (const auto* flag = std::get_if<bool>(&value)) return *flag;
    if (const auto* text = std::get_if<std::string>(&value)) {
        constexpr std::array<std::string_view, 16> booleans{
            "yes", "Yes", "YES", "no",  "No",   "NO",   "on",    "On",
            "ON",  "off", "Off", "OFF", "True", "TRUE", "False", "FALSE"};
        if (!node.is_quoted() &&
            std::find(booleans.begin(), booleans.end(), *text) != booleans.end())
            node.fail("'" + *text +
                      "' is a text or a boolean, by the version of YAML: write true or false, or "
                      "put it in quotes");
        return *text;
    }
    const std::string written = node.text();
    if (written.size() > 1 && written[0] == '0' &&
        written.find_first_not_of("0123456789") == std::string::npos)
        node.fail("'" + written +
                  "' is octal or decimal, by the version of YAML: write the decimal number, or put "
                  "it in quotes");
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    return written;
}

OrderedJson json_of_node(const Yaml& node) {
    if (node.is_mapping()) {
        OrderedJson result = OrderedJson::object();
        for (const auto& [key, value] : node.entries()) result[key] = json_of_node(value);
        return result;
    }
    if (node.is_sequence()) {
        OrderedJson result = OrderedJson::array();
        for (const Yaml& item : node.items()) result.push_back(json_of_node(item));
        return result;
    }
    return node.is_scalar() ? scalar_json(node) : OrderedJson(nullptr);
}

}  // namespace

std::string json_text_of(const Yaml& node) { return json_of_node(node).dump(); }

}  // namespace servetune
