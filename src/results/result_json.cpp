// SPDX-License-Identifier: Apache-2.0
#include "result_formats.hpp"
#include "servetune/space/value.hpp"

namespace servetune {

const nlohmann::json* node_at(const nlohmann::json& value, JsonPath path) {
    const nlohmann::json* at = &value;
    for (const std::string_view key : path) {
        if (!at->is_object()) return nullptr;
        const auto child = at->find(std::string(key));
        if (child == at->end()) return nullptr;
        at = &*child;
    }
    return at;
}

std::optional<double> figure_at(const nlohmann::json& value, JsonPath path, int exponent) {
    const auto* node = node_at(value, path);
    if (node == nullptr || !node->is_number()) return std::nullopt;
    const double number = node->get<double>();
    if (!std::isfinite(number) || number < 0) return std::nullopt;
    if (exponent == 0 || number == 0) return number;
    // Shifted in the text, so that 15.12 ms is the double nearest to 0.01512.
    const std::string text = text_of(number);
    const auto power = text.find('e');
    const auto digits = std::string_view(text).substr(0, power);
    const std::int64_t shifted =
        exponent + (power == std::string::npos ? 0 : integer_of(text.substr(power + (text[power + 1] == '+' ? 2 : 1))).value_or(0));
    return real_of(std::string(digits) + "e" + std::to_string(shifted));
}

std::string one_line(std::string_view text) {
    constexpr std::size_t longest = 500;
    std::string result(text.substr(0, longest));
    if (text.size() > longest)  // not in the middle of a character
        while (!result.empty() && (static_cast<unsigned char>(text[result.size()]) & 0xC0U) == 0x80U) result.pop_back();
    for (char& c : result)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
    return result;
}

std::string text_at(const nlohmann::json& value, JsonPath path) {
    const auto* node = node_at(value, path);
    return node != nullptr && node->is_string() ? one_line(node->get_ref<const std::string&>()) : "";
}

std::optional<std::string> scalar_text(const nlohmann::json& value) {
    if (value.is_string()) return one_line(value.get_ref<const std::string&>());
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number()) return value.is_number_float() ? text_of(value.get<double>()) : value.dump();
    return std::nullopt;
}

}  // namespace servetune
