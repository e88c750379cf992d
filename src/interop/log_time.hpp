// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace servetune {

/// A moment as a log writes it.
struct LogTime {
    double seconds = 0;  ///< since 1970; in UTC where the log says its zone, else of its own clock
    bool has_zone = false;  ///< a number of seconds since 1970 has
    bool has_year = true;
    bool whole = false;  ///< it counts whole seconds only
};

/// `2026-11-28T09:53:46.123Z` (also with a blank, a comma, `+01:00`), `28/Nov/2026:09:53:46 +0100`,
/// `11-28 09:53:46`, or a number since 1970: of seconds, or where it is too large for that of
/// milli-, micro- or nanoseconds. Nothing: it is none of these from its first to its last
/// character.
std::optional<LogTime> log_time(std::string_view text);

/// As log_time, of the time that a text begins with; the text is then what comes behind it.
std::optional<LogTime> take_log_time(std::string_view& text);

/// Makes the times of one log rise where a clock without a zone or a year does not: at the end of
/// daylight saving it goes back an hour, at New Year a year.
class LogClock {
public:
    double seconds(const LogTime& time);
    [[nodiscard]] bool was_set() const { return ahead_ != 0; }

private:
    std::optional<double> last_{};
    double ahead_ = 0;
};

}  // namespace servetune
