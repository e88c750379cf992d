// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"

#include <cstddef>
#include <string_view>

namespace servetune {

/// The longest time that an option may say: a hundred years. Clocks count in 64 bits, and more
/// would overflow them.
inline constexpr double longest_seconds = 100 * 365.0 * 86400;

/// Collects what is wrong with a caller's options, all of it at once:
///
///     std::string Options::why_invalid() const {
///         return OptionCheck().seconds("stall_timeout_seconds", stall_timeout_seconds)
///             .within("loops", loops, 1, 1024).text();
///     }
class OptionCheck {
public:
    /// Infinity passes where `high` is infinite; NaN never does.
    OptionCheck& within(std::string_view name, double value, double low, double high) {
        return that(value >= low && value <= high, name,
                    "a number in [" + text_of(low) + ", " + text_of(high) + "]", text_of(value));
    }
    /// More than 0, at most `longest_seconds`.
    OptionCheck& seconds(std::string_view name, double value) {
        return that(value > 0 && value <= longest_seconds, name,
                    "seconds above 0, at most " + text_of(longest_seconds), text_of(value));
    }
    OptionCheck& at_least(std::string_view name, std::size_t value, std::size_t least) {
        return that(value >= least, name, "at least " + std::to_string(least),
                    std::to_string(value));
    }
    OptionCheck& that(bool holds, std::string_view name, const std::string& wanted,
                      const std::string& got) {
        if (!holds)
            text_.append(text_.empty() ? "" : "; ")
                .append(name)
                .append(": " + wanted + " wanted, got " + got);
        return *this;
    }
    /// What other options, which belong to these as `name`, say of themselves.
    OptionCheck& part(std::string_view name, const std::string& why_invalid) {
        if (!why_invalid.empty())
            text_.append(text_.empty() ? "" : "; ").append(name).append(": " + why_invalid);
        return *this;
    }
    /// Empty: nothing is wrong.
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_{};
};

/// Throws UsageError `whose: what is wrong` unless `why_invalid` is empty.
inline void check_options(std::string_view whose, const std::string& why_invalid) {
    if (!why_invalid.empty()) throw UsageError(std::string(whose) + ": " + why_invalid);
}

}  // namespace servetune
