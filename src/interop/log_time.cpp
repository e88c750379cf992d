// SPDX-License-Identifier: Apache-2.0
#include "log_time.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string>

namespace servetune {
namespace {

constexpr std::string_view log_months = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr int year_of_none = 2024;  ///< of dates without one: it has every day that there is
constexpr double hour_seconds = 3600;
constexpr double seconds_of_year =
    366 * 24 * hour_seconds;  ///< from one day of `year_of_none` to the same a year later

/// Reads from the front of a text.
class Front {
public:
    explicit Front(std::string_view text) : text_(text) {}

    /// Exactly so many digits.
    std::optional<int> digits(std::size_t count) {
        if (text_.size() < count) return std::nullopt;
        int value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (text_[i] < '0' || text_[i] > '9') return std::nullopt;
            value = value * 10 + (text_[i] - '0');
        }
        text_.remove_prefix(count);
        return value;
    }
    bool one_of(std::string_view characters) {
        if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
        text_.remove_prefix(1);
        return true;
    }
    [[nodiscard]] std::string_view rest() const { return text_; }
    void skip(std::size_t count) { text_.remove_prefix(count); }

private:
    std::string_view text_;
};

std::optional<double> seconds_at(int year, int month, int day, Front& front) {
    const auto hour = front.digits(2);
    if (!hour || !front.one_of(":")) return std::nullopt;
    const auto minute = front.digits(2);
    if (!minute || !front.one_of(":")) return std::nullopt;
    const auto second = front.digits(2);
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!second || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
    const auto days = std::chrono::sys_days(date).time_since_epoch().count();
    return static_cast<double>(days) * 24 * hour_seconds + *hour * hour_seconds + *minute * 60 +
           *second;
}

void take_fraction(Front& front, LogTime& time) {
    time.whole = true;
    const std::string_view rest = front.rest();
    if (rest.size() < 2 || (rest[0] != '.' && rest[0] != ',') || rest[1] < '0' || rest[1] > '9')
        return;
    front.skip(1);
    time.whole = false;
    for (double unit = 0.1;
         !front.rest().empty() && front.rest()[0] >= '0' && front.rest()[0] <= '9'; unit /= 10) {
        time.seconds += unit * (front.rest()[0] - '0');
        front.skip(1);
    }
}

/// `Z`, `+01:00` or `+0100`, behind a blank or not.
void take_zone(Front& front, LogTime& time) {
    Front ahead = front;
    (void)ahead.one_of(" ");
    if (ahead.one_of("Zz")) {
        time.has_zone = true;
        front = ahead;
        return;
    }
    const bool west = !ahead.rest().empty() && ahead.rest().front() == '-';
    if (!ahead.one_of("+-")) return;
    const auto hours = ahead.digits(2);
    (void)ahead.one_of(":");
    const auto minutes = ahead.digits(2);
    if (!hours || !minutes) return;
    time.has_zone = true;
    time.seconds += (west ? 1 : -1) * (*hours * hour_seconds + *minutes * 60);
    front = ahead;
}

std::optional<LogTime> take_date(Front& front) {
    Front dashed = front;  // 2026-11-28 or 11-28
    LogTime time;
    std::optional<int> year = dashed.digits(4);
    if (year && !dashed.one_of("-")) year.reset();
    if (!year) dashed = front;
    const auto month = dashed.digits(2);
    if (month && dashed.one_of("-"))
        if (const auto day = dashed.digits(2); day && dashed.one_of(year ? " T" : " ")) {
            const auto seconds = seconds_at(year.value_or(year_of_none), *month, *day, dashed);
            if (!seconds) return std::nullopt;
            time.seconds = *seconds;
            time.has_year = year.has_value();
            take_fraction(dashed, time);
            take_zone(dashed, time);
            front = dashed;
            return time;
        }
    Front named = front;  // 28/Nov/2026:09:53:46
    const auto day = named.digits(2);
    if (!day || !named.one_of("/") || named.rest().size() < 3) return std::nullopt;
    const auto name = log_months.find(named.rest().substr(0, 3));
    if (name == std::string_view::npos || name % 3 != 0) return std::nullopt;
    named.skip(3);
    if (!named.one_of("/")) return std::nullopt;
    const auto its_year = named.digits(4);
    if (!its_year || !named.one_of(":")) return std::nullopt;
    const auto seconds = seconds_at(*its_year, static_cast<int>(name / 3) + 1, *day, named);
    if (!seconds) return std::nullopt;
    time.seconds = *seconds;
    take_fraction(named, time);
    take_zone(named, time);
    front = named;
    return time;
}

}  // namespace

std::optional<LogTime> take_log_time(std::string_view& text) {
    Front front(text);
    const auto time = take_date(front);
    if (time) text = front.rest();
    return time;
}

std::optional<LogTime> log_time(std::string_view text) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && stop == text.data() + text.size()) {
        // 1e11 seconds are the year 5138, and 1e11 milliseconds 1973.
        if (!(number >= 0 && number < 1e20)) return std::nullopt;
        double unit = 1;
        while (number / unit >= 1e11) unit *= 1000;
        return LogTime{number / unit, true, true, unit == 1 && number == std::floor(number)};
    }
    std::string_view rest = text;
    const auto time = take_log_time(rest);
    return rest.empty() ? time : std::nullopt;
}

double LogClock::seconds(const LogTime& time) {
    if (time.has_zone) return time.seconds;
    double now = time.seconds + ahead_;
    if (last_) {
        const double back = *last_ - now;
        // An hour but for what lies between the lines; a clock that is set is not set so far.
        double step = 0;
        if (back > hour_seconds / 2 && back < 1.5 * hour_seconds) step = hour_seconds;
        if (!time.has_year && back > seconds_of_year / 2) step = seconds_of_year;
        ahead_ += step;
        now += step;
    }
    last_ = last_ ? std::max(*last_, now) : now;
    return now;
}

}  // namespace servetune
