// SPDX-License-Identifier: Apache-2.0
#include "stamped_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace servetune {
namespace {

constexpr std::int64_t one_second = 1'000'000'000;
/// By how much a line may be late: the two writers of a container's outputs wait for a file and a
/// processor, no longer.
constexpr std::int64_t longest_disorder = 2 * one_second;

/// `digits` of a text from `at` on; nothing where there are others.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t digits) {
    if (text.size() < at + digits) return std::nullopt;
    int result = 0;
    for (const char c : text.substr(at, digits)) {
        if (c < '0' || c > '9') return std::nullopt;
        result = 10 * result + (c - '0');
    }
    return result;
}

}  // namespace

std::optional<std::int64_t> nanoseconds_of(std::string_view time) {
    constexpr std::string_view form = "0000-00-00T00:00:00";
    constexpr std::array<std::pair<std::size_t, std::size_t>, 6> places{
        {{0, 4}, {5, 2}, {8, 2}, {11, 2}, {14, 2}, {17, 2}}};
    std::array<int, 6> parts{};
    if (time.size() <= form.size()) return std::nullopt;
    for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] != '0' && time[i] != form[i]) return std::nullopt;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto part = digits_at(time, places.at(i).first, places.at(i).second);
        if (!part) return std::nullopt;
        parts.at(i) = *part;
    }
    const std::chrono::year_month_day day{std::chrono::year(parts[0]),
                                          std::chrono::month(static_cast<unsigned>(parts[1])),
                                          std::chrono::day(static_cast<unsigned>(parts[2]))};
    if (!day.ok()) return std::nullopt;
    std::size_t at = form.size();
    std::int64_t fraction = 0;
    if (time[at] == '.') {
        std::int64_t place = one_second / 10;
        for (++at; at < time.size() && time[at] >= '0' && time[at] <= '9'; ++at, place /= 10)
            fraction += place * (time[at] - '0');
    }
    std::int64_t zone_minutes = 0;
    if (const std::string_view zone = time.substr(at); zone != "Z") {
        const auto hours = digits_at(zone, 1, 2);
        const auto minutes = digits_at(zone, 4, 2);
        if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':' || !hours ||
            !minutes)
            return std::nullopt;
        zone_minutes = (zone[0] == '-' ? -1 : 1) * (60 * *hours + *minutes);
    }
    const std::int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
    return (((days * 24 + parts[3]) * 60 + parts[4] - zone_minutes) * 60 + parts[5]) * one_second +
           fraction;
}

std::string StampedLog::since() const {
    if (latest_ == 0) return {};
    const std::chrono::sys_seconds time{
        std::chrono::seconds((latest_ - longest_disorder) / one_second)};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{time - day};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

void StampedLog::begin() {
    unfinished_.clear();
    again_ = recent_;
    printed_before_ = latest_ - longest_disorder;
}

void StampedLog::take(std::string_view bytes) {
    unfinished_ += bytes;
    std::size_t from = 0;
    for (std::size_t end = 0; (end = unfinished_.find('\n', from)) != std::string::npos;
         from = end + 1)
        take_line(std::string_view(unfinished_).substr(from, end - from));
    unfinished_.erase(0, from);
}

void StampedLog::finish() {
    if (!unfinished_.empty()) take_line(unfinished_);
    unfinished_.clear();
}

void StampedLog::take_line(std::string_view line) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const auto time = nanoseconds_of(line.substr(0, blank));
    if (!time) {
        complaint_ = line;
        return;
    }
    const std::string_view content = line.substr(std::min(blank + 1, line.size()));
    if (*time < printed_before_) return;
    const Key key{*time, std::hash<std::string_view>{}(content)};
    if (const auto known = again_.find(key); known != again_.end()) {
        if (--known->second == 0) again_.erase(known);
        return;
    }
    ++recent_[key];
    latest_ = std::max(latest_, *time);
    recent_.erase(recent_.begin(), recent_.lower_bound({latest_ - longest_disorder, 0}));
    print_(content);
}

}  // namespace servetune
