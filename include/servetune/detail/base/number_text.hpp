// SPDX-License-Identifier: Apache-2.0
// Numbers as text, one function for each meaning. All are the same on every compiler and in every
// locale.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace servetune {

/// Shortest text that reads back as exactly this number: what is stored, and what a person has
/// given.
inline std::string text_of(double number) {
    std::array<char, 32> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr};
}

/// `decimals` (0 to 60) digits after the point: `12.50`.
inline std::string fixed_text(double value, int decimals) {
    std::array<char, 400> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                         std::chars_format::fixed, decimals)
                               .ptr};
}

/// `digits` (1 to 17) digits that count, without zeros at the end: `0.0125`, `1.2e+07`.
inline std::string significant_text(double value, int digits) {
    std::array<char, 40> buffer{};
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                         std::chars_format::general, digits)
                               .ptr};
}

/// A number for people: `decimals` digits after the point, and below 0.1 as many more as three
/// digits that count need.
inline std::string number_text(double value, int decimals = 2) {
    const double size = std::abs(value);
    if (std::isfinite(value) && size > 0 && size < 0.1)
        decimals = std::max(decimals, 2 - static_cast<int>(std::floor(std::log10(size))));
    const bool readable = size < 1e15 && decimals < 15;
    return readable ? fixed_text(value, decimals) : significant_text(value, 4);
}

/// Two decimals, below 1 four, without the zeros at the end: `0.9875`, `2000`. `decimals`: so many.
inline std::string short_number_text(double value, int decimals = 0) {
    std::string text = number_text(value, decimals > 0 ? decimals : std::abs(value) < 1 ? 4 : 2);
    if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text;
}

/// A share of 1 as percent: `12.5 %`.
inline std::string percent_text(double share, int decimals) {
    return fixed_text(share * 100, decimals) + " %";
}

/// A time in a message, below 10 s to three digits, else to a tenth: `0.05 s`, `12.3 s`, `1800 s`.
inline std::string seconds_text(double seconds) {
    return (std::abs(seconds) < 10 ? significant_text(seconds, 3)
                                   : text_of(std::round(seconds * 10) / 10)) +
           " s";
}

/// `1 trial`, `2 trials`.
inline std::string counted_text(std::size_t count, std::string_view noun) {
    return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

}  // namespace servetune
