// SPDX-License-Identifier: Apache-2.0
#include "result_formats.hpp"
#include "servetune/value.hpp"

#include <array>
#include <cmath>

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
    if (!std::isfinite(number)) return std::nullopt;
    if (exponent == 0 || number == 0) return number;
    // Shifted in the text, so that 15.12 ms is the double nearest to 0.01512.
    const std::string text = text_of(number);
    const auto power = text.find('e');
    const auto digits = std::string_view(text).substr(0, power);
    const std::int64_t shifted =
        exponent +
        (power == std::string::npos
             ? 0
             : integer_of(text.substr(power + (text[power + 1] == '+' ? 2 : 1))).value_or(0));
    return real_of(std::string(digits) + "e" + std::to_string(shifted));
}

std::optional<double> setting_at(const nlohmann::json& value, JsonPath path) {
    const auto figure = figure_at(value, path);
    return figure < 0.0 ? std::nullopt : figure;
}

std::string one_line(std::string_view text) {
    constexpr std::size_t longest = 500;
    std::string result(text.substr(0, longest));
    if (text.size() > longest)  // not in the middle of a character
        while (!result.empty() &&
               (static_cast<unsigned char>(text[result.size()]) & 0xC0U) == 0x80U)
            result.pop_back();
    for (char& c : result)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
    return result;
}

std::string text_at(const nlohmann::json& value, JsonPath path) {
    const auto* node = node_at(value, path);
    return node != nullptr && node->is_string() ? one_line(node->get_ref<const std::string&>())
                                                : "";
}

std::optional<std::string> scalar_text(const nlohmann::json& value) {
    if (value.is_string()) return one_line(value.get_ref<const std::string&>());
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number())
        return value.is_number_float() ? text_of(value.get<double>()) : value.dump();
    return std::nullopt;
}

std::optional<int> time_exponent_of(std::string_view unit) {
    constexpr std::array<std::pair<std::string_view, int>, 6> units{
        {{"ns", -9}, {"us", -6}, {"ms", -3}, {"sec", 0}, {"s", 0}, {"seconds", 0}}};
    for (const auto& [name, exponent] : units)
        if (unit == name) return exponent;
    return std::nullopt;
}

std::optional<double> ResultFields::figure(const std::string& key, int exponent) {
    asked_.insert(key);
    return figure_at(object_, {key}, exponent);
}

std::string ResultFields::text(const std::string& key) {
    asked_.insert(key);
    return text_at(object_, {key});
}

TimeSummary ResultFields::times(const std::string& family, const std::string& suffix,
                                int exponent) {
    const auto at = [&](const std::string& statistic) {
        return figure(statistic + family + suffix, exponent);
    };
    TimeSummary result{at("mean_"), at("median_"), at("p90_"), at("p95_"), at("p99_"), at("std_")};
    const auto median = at("p50_");  // vLLM writes it beside the median when it is asked for
    if (!result.p50) result.p50 = median;
    bool any = false;
    bool zeros = true;
    for (const auto& value : {result.mean, result.p50, result.standard_deviation})
        if (value) any = true, zeros = zeros && value == 0;
    return any && zeros ? TimeSummary{} : result;
}

std::map<std::string, std::string> ResultFields::unread() const {
    std::map<std::string, std::string> result;
    if (!object_.is_object()) return result;
    for (const auto& [key, value] : object_.items())
        if (!asked_.contains(key))
            if (const auto text = scalar_text(value)) result[one_line(key)] = *text;
    return result;
}

}  // namespace servetune
