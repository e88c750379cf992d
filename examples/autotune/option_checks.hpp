// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace autotune {

/// Checks of option values whose messages say what is wanted: "--rate: a number above 0 wanted, got
/// 'abc'". They look at the text, before it is converted.

/// `or_infinite`: "inf" too.
inline CLI::Validator positive_number(bool or_infinite = false) {
    const std::string wanted = or_infinite ? "a number above 0, or inf," : "a number above 0";
    return {[or_infinite, wanted](const std::string& text) {
                double value = 0;
                const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
                const bool read = error == std::errc() && end == text.data() + text.size();
                const bool fine = read && value > 0 && (std::isfinite(value) || (or_infinite && text == "inf"));
                return fine ? std::string() : wanted + " wanted, got '" + text + "'";
            },
            or_infinite ? "POSITIVE|inf" : "POSITIVE"};
}

/// Seconds, or a time with its unit (`500ms`), which becomes seconds. A minute or more has to say
/// its unit: 500 is most often meant as milliseconds.
inline CLI::Validator seconds_or_unit() {
    return {[](std::string& text) {
                constexpr double needs_unit_from = 60;
                constexpr std::array<std::pair<std::string_view, double>, 3> units{{{"ms", 1e-3}, {"min", 60.0}, {"s", 1.0}}};
                std::string_view number = text;
                double factor = 0;
                for (const auto& [unit, seconds] : units) {
                    if (factor > 0 || number.size() <= unit.size() || number.substr(number.size() - unit.size()) != unit) continue;
                    number.remove_suffix(unit.size());
                    factor = seconds;
                }
                while (factor > 0 && !number.empty() && number.back() == ' ') number.remove_suffix(1);
                double value = 0;
                const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
                if (error != std::errc() || end != number.data() + number.size() || !(value > 0) || !std::isfinite(value))
                    return "seconds, or a time such as 500ms, wanted, got '" + text + "'";
                if (factor <= 0 && value >= needs_unit_from) return "say the unit: " + text + "ms or " + text + "s";
                std::array<char, 64> written{};
                const auto made = std::to_chars(written.data(), written.data() + written.size(), factor > 0 ? value * factor : value);
                text.assign(written.data(), made.ptr);
                return std::string();
            },
            "TIME"};
}

/// An integer from `least` on that fits 64 bits without a sign.
inline CLI::Validator whole_number(std::uint64_t least) {
    return {[least](const std::string& text) {
                std::uint64_t value = 0;
                const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
                const bool fine = error == std::errc() && end == text.data() + text.size() && value >= least;
                return fine ? std::string() : "an integer of at least " + std::to_string(least) + " wanted, got '" + text + "'";
            },
            "INTEGER"};
}

}  // namespace autotune
