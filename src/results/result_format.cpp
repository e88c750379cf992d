// SPDX-License-Identifier: Apache-2.0
#include "result_format.hpp"

#include "servetune/detail/load/statistics.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {

const nlohmann::json* node_at(const nlohmann::json& value, std::string_view path) {
    const nlohmann::json* at = &value;
    while (!path.empty()) {
        const std::string_view key = path.substr(0, path.find('>'));
        path.remove_prefix(std::min(path.size(), key.size() + 1));
        if (!at->is_object()) return nullptr;
        const auto child = at->find(std::string(key));
        if (child == at->end()) return nullptr;
        at = &*child;
    }
    return at;
}

std::optional<double> figure_at(const nlohmann::json& value, std::string_view path, int exponent) {
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

std::optional<double> setting_at(const nlohmann::json& value, std::string_view path) {
    const auto figure = figure_at(value, path);
    return figure < 0.0 ? std::nullopt : figure;
}

std::string text_at(const nlohmann::json& value, std::string_view path) {
    const auto* node = node_at(value, path);
    return node != nullptr && node->is_string() ? one_line(node->get_ref<const std::string&>())
                                                : "";
}

TimeSummary times_at(const nlohmann::json& value, std::string_view path,
                     const StatisticNames& statistics, int exponent) {
    TimeSummary result;
    const std::size_t star = path.find('*');
    for (std::size_t i = 0; i < statistics.size(); ++i)
        if (!statistics[i].empty())
            result.*time_statistics[i] =
                figure_at(value, std::string(path).replace(star, 1, statistics[i]), exponent);
    return result;
}

void read_fields(const nlohmann::json& value, std::span<const FigureField> rows,
                 BenchmarkResult& into) {
    for (const FigureField& row : rows)
        if (const auto figure = figure_at(value, row.path, row.exponent)) into.*row.figure = figure;
}

void read_fields(const nlohmann::json& value, std::span<const TimesField> rows,
                 const StatisticNames& statistics, BenchmarkResult& into) {
    for (const TimesField& row : rows)
        into.*row.times = times_at(value, row.path, statistics, row.exponent);
}

std::optional<double> total_of(const std::optional<double>& mean,
                               const std::optional<double>& successes) {
    const double total = std::round(mean.value_or(0) * std::max(0.0, successes.value_or(0)));
    return total != 0 && std::isfinite(total) ? std::optional(total) : std::nullopt;
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

std::optional<std::string> scalar_text(const nlohmann::json& value) {
    if (value.is_string()) return one_line(value.get_ref<const std::string&>());
    if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
    if (value.is_number())
        return value.is_number_float() ? text_of(value.get<double>()) : value.dump();
    return std::nullopt;
}

std::map<std::string, std::string> scalars_of(const nlohmann::json& object,
                                              const std::set<std::string>& without) {
    std::map<std::string, std::string> result;
    if (!object.is_object()) return result;
    for (const auto& [key, value] : object.items())
        if (const auto text = scalar_text(value); text && !without.contains(key))
            result[one_line(key)] = *text;
    return result;
}

std::string settings_text(const std::map<std::string, std::string>& settings) {
    std::string text;
    for (const auto& [name, value] : settings)
        text += (text.empty() ? "" : ", ") + name + "=" + value;
    return text;
}

std::optional<int> time_exponent_of(std::string_view unit) {
    constexpr std::array<std::pair<std::string_view, int>, 6> units{
        {{"ns", -9}, {"us", -6}, {"ms", -3}, {"sec", 0}, {"s", 0}, {"seconds", 0}}};
    for (const auto& [name, exponent] : units)
        if (unit == name) return exponent;
    return std::nullopt;
}

TimeSummary summary_of_times(std::vector<double> samples) {
    if (samples.empty()) return {};
    TimeSummary summary = summary_of(std::move(samples));
    for (const auto statistic : time_statistics)
        if (auto& value = summary.*statistic; value && !std::isfinite(*value)) value.reset();
    return summary;
}

bool has_figures(BenchmarkResult result) {
    for (auto* asked : {&result.requested_requests, &result.maximum_concurrency,
                        &result.requested_rate_per_second})
        asked->reset();
    bool some = false;
    for_each_figure(result, [&](const std::string&, const std::optional<double>& figure) {
        some = some || figure.has_value();
    });
    return some;
}

}  // namespace servetune
