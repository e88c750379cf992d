// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace autotune {

/// Checks of option values whose messages say what is wanted: "--rate: a number above 0 wanted, got
/// 'abc'". They look at the text, before it is converted.

/// `or_infinite`: "inf" too.
inline CLI::Validator positive_number(bool or_infinite = false) {
    const std::string wanted = or_infinite ? "a number above 0, or inf," : "a number above 0";
    return {[or_infinite, wanted](const std::string& text) {
                double value = 0;
                const auto [end, error] =
                    std::from_chars(text.data(), text.data() + text.size(), value);
                const bool read = error == std::errc() && end == text.data() + text.size();
                const bool fine =
                    read && value > 0 && (std::isfinite(value) || (or_infinite && text == "inf"));
                return fine ? std::string() : wanted + " wanted, got '" + text + "'";
            },
            or_infinite ? "POSITIVE|inf" : "POSITIVE"};
}

/// Seconds, or a time with its unit (`500ms`), which becomes seconds. A minute or more has to say
/// its unit: 500 is most often meant as milliseconds.
inline CLI::Validator seconds_or_unit() {
    return {[](std::string& text) {
                constexpr double needs_unit_from = 60;
                constexpr std::array<std::pair<std::string_view, double>, 5> units{
                    {{"ms", 1e-3}, {"min", 60.0}, {"s", 1.0}, {"h", 3600.0}, {"d", 86400.0}}};
                std::string_view number = text;
                double factor = 0;
                for (const auto& [unit, seconds] : units) {
                    if (factor > 0 || number.size() <= unit.size() ||
                        number.substr(number.size() - unit.size()) != unit)
                        continue;
                    number.remove_suffix(unit.size());
                    factor = seconds;
                }
                while (factor > 0 && !number.empty() && number.back() == ' ')
                    number.remove_suffix(1);
                double value = 0;
                const auto [end, error] =
                    std::from_chars(number.data(), number.data() + number.size(), value);
                if (error != std::errc() || end != number.data() + number.size() || !(value > 0) ||
                    !std::isfinite(value))
                    return "seconds, or a time such as 500ms, wanted, got '" + text + "'";
                if (factor <= 0 && value >= needs_unit_from)
                    return "say the unit: " + text + "ms or " + text + "s";
                std::array<char, 64> written{};
                const auto made = std::to_chars(written.data(), written.data() + written.size(),
                                                factor > 0 ? value * factor : value);
                text.assign(written.data(), made.ptr);
                return std::string();
            },
            "TIME"};
}

/// What is wrong with an integer that has to be within these bounds; empty: nothing. `wanted`:
/// these bounds in words.
template <class Integer>
std::string wrong_with_integer(const std::string& text, Integer least, Integer most,
                               const std::string& wanted) {
    Integer value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = end == text.data() + text.size();
    if (error == std::errc() && whole && value >= least && value <= most) return "";
    return wanted + " wanted, got '" + text + "'" +
           (error == std::errc::result_out_of_range && whole ? ", which is too large" : "");
}

/// An integer from `least` on that fits `Integer`.
template <class Integer = std::uint64_t>
CLI::Validator whole_number(std::type_identity_t<Integer> least) {
    return {[least](const std::string& text) {
                return wrong_with_integer(text, least, std::numeric_limits<Integer>::max(),
                                          "an integer of at least " + std::to_string(least));
            },
            "INTEGER"};
}

/// An integer within bounds, which --help says too.
inline CLI::Validator whole_number(int least, int most) {
    const std::string low = std::to_string(least), high = std::to_string(most);
    return {[=](const std::string& text) {
                return wrong_with_integer(text, least, most,
                                          "an integer from " + low + " to " + high);
            },
            "INTEGER in [" + low + " - " + high + "]"};
}

/// A number from 0 to 1, which --help says too.
inline CLI::Validator share() {
    return {[](const std::string& text) {
                double value = 0;
                const auto [end, error] =
                    std::from_chars(text.data(), text.data() + text.size(), value);
                const bool fine = error == std::errc() && end == text.data() + text.size() &&
                                  value >= 0 && value <= 1;
                return fine ? std::string() : "a share from 0 to 1 wanted, got '" + text + "'";
            },
            "SHARE in [0 - 1]"};
}

}  // namespace autotune
