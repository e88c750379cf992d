// SPDX-License-Identifier: Apache-2.0
#include "yaml_text.hpp"

#include "base/text.hpp"
#include "space/value_json.hpp"

#include <nlohmann/json.hpp>

#include <cctype>
#include <set>
#include <variant>

namespace servetune {

namespace {

/// 0x1f, 0b1, 0o7, 1_000, 1_0.5: numbers of YAML 1.1 or 1.2 that are none of ours.
bool is_number_elsewhere(std::string_view text) {
    if (text.size() > 2 && text[0] == '0' && contains("xXbBoO", text[1]))
        return text.find_first_not_of("0123456789abcdefABCDEF_", 2) == npos;
    return contains(text, '_') && text.find_first_not_of("0123456789_.eE+-") == npos;
}

using OrderedJson = nlohmann::ordered_json;

std::string yaml_key(const std::string& name) {
    return name == unset_text ? name : yaml_text(name);
}

/// In one line: `{a: 1, b: [2, x]}`.
std::string yaml_flow(const OrderedJson& node) {
    if (node.is_null()) return std::string(unset_text);
    if (node.is_string()) return yaml_text(node.get<std::string>());
    if (node.is_number_float()) return text_of(node.get<double>());
    if (!node.is_structured()) return node.dump();
    std::string items;
    for (const auto& [key, child] : node.items())
        items += (items.empty() ? "" : ", ") + (node.is_object() ? yaml_key(key) + ": " : "") +
                 yaml_flow(child);
    return node.is_object() ? "{" + items + "}" : "[" + items + "]";
}

}  // namespace

std::string yaml_quoted(const std::string& text) {
    const std::string json = printable(
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return replaced_all(replaced_all(json, "\xEF\xBF\xBE", "\\ufffe"), "\xEF\xBF\xBF", "\\uffff");
}

std::string yaml_text(const std::string& text) {
    static const std::set<std::string> booleans{"on", "off",  "yes",  "no",   "y",
                                                "n",  "null", "true", "false"};
    std::string literal;
    for (std::size_t i = 0; i < text.size(); ++i)
        literal += text.compare(i, 2, "${") == 0 ? "$$" : std::string(1, text[i]);
    const bool plain =
        !literal.empty() && std::holds_alternative<std::string>(value_of(literal)) &&
        !booleans.contains(lower_case(literal)) &&
        std::isalnum(static_cast<unsigned char>(literal.front())) != 0 &&
        literal.find_first_not_of("0123456789-") != npos &&  // 2026-11-25 is a date to some
        !is_number_elsewhere(literal) && all_of(literal, [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 || contains("._/-+", c);
        });
    return plain ? literal : yaml_quoted(literal);
}
namespace {

/// A quoted word is a text by its value; a plain one may be what only one of the versions of YAML
/// reads as a boolean or an octal number (yaml.org/type/bool.html, int.html; YAML 1.2.2, 10.3.2).
OrderedJson scalar_json(const Yaml& node) {
    static const std::set<std::string> booleans{"on", "off", "yes", "no", "true", "false"};
    const Value value = node.value();
    const std::string written = node.text();
    const bool octal =
        written.size() > 1 && written[0] == '0' && written.find_first_not_of("0123456789") == npos;
    const bool boolean =
        std::holds_alternative<std::string>(value) && booleans.contains(lower_case(written));
    if (!node.is_quoted() && (octal || boolean))
        node.fail("'" + written +
                  "' has another meaning in YAML 1.1 than in 1.2: write true, false or a decimal "
                  "number, or put it in quotes");
    return is_unset(value) ? OrderedJson(written) : to_json(value);
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

std::string yaml_document(const nlohmann::ordered_json& mapping) {
    std::string text;
    for (const auto& [key, node] : mapping.items()) {
        text += yaml_key(key) + ":";
        const bool below =
            any_of(node, [](const OrderedJson& child) { return child.is_structured(); });
        if (!below) text += " " + yaml_flow(node);
        text += "\n";
        for (const auto& [name, child] : node.items())
            if (below)
                text += (node.is_object() ? "  " + yaml_key(name) + ": " : "  - ") +
                        yaml_flow(child) + "\n";
    }
    return text;
}

}  // namespace servetune
