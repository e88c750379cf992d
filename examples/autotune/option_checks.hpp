// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace autotune {

/// Checks of option values whose messages say what is wanted: "--rate: a number above 0 wanted, got 'abc'". They look
/// at the text, before it is converted.

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
