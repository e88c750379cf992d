// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

namespace servetune {

/// A number for people: `decimals` digits after the point, and below 0.1 as many more as three digits that count need.
inline std::string number_text(double value, int decimals = 2) {
    const double size = std::abs(value);
    if (std::isfinite(value) && size > 0 && size < 0.1) decimals = std::max(decimals, 2 - static_cast<int>(std::floor(std::log10(size))));
    std::array<char, 400> buffer{};
    const bool readable = size < 1e15 && decimals < 15;
    const auto written = readable ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals)
                                  : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 4);
    return {buffer.data(), written.ptr};
}

/// Two decimals, below 1 four, without the zeros at the end: `0.9875`, `2000`. `decimals`: so many.
inline std::string short_number_text(double value, int decimals = 0) {
    std::string text = number_text(value, decimals > 0 ? decimals : std::abs(value) < 1 ? 4 : 2);
    if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
}

/// Times are shown in milliseconds, as serving benchmarks print them; everything else in its own unit, which ends the metric's name.
inline bool shown_in_milliseconds(std::string_view metric) { return metric.substr(0, metric.find('@')).ends_with("_seconds"); }

/// The number of a metric without its unit, for a column whose header names it.
inline std::string plain_figure_text(std::string_view metric, double value) {
    if (metric.substr(0, metric.find('@')).ends_with("_ratio")) return short_number_text(value);  // what counts may be its fourth digit
    return number_text(shown_in_milliseconds(metric) ? value * 1e3 : value);
}

/// The number of a metric with its unit where the metric's name does not say it: `728.59 ms`, `11527.14`.
inline std::string figure_text(std::string_view metric, double value) {
    return plain_figure_text(metric, value) + (shown_in_milliseconds(metric) ? " ms" : "");
}

}  // namespace servetune
