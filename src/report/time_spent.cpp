// SPDX-License-Identifier: Apache-2.0
// Where the time of a study went, and what ended load tests and servers that serve on have saved.
#include "report_view.hpp"
#include "servetune/detail/base/number_text.hpp"

#include <fmt/format.h>

#include <string_view>

namespace servetune {
namespace {

/// `45 s`, `12.5 min`, `3.2 h`.
std::string spent_text(double seconds) {
    constexpr double minute = 60;
    constexpr double hour = 3600;
    if (seconds < 2 * minute) return fmt::format("{:.0f} s", seconds);
    return seconds < 2 * hour ? fmt::format("{:.1f} min", seconds / minute) : fmt::format("{:.1f} h", seconds / hour);
}

}  // namespace

std::string time_spent_text(std::span<const Trial> trials) {
    double starts = 0;
    double warm_up = 0;
    double loads = 0;
    double saved = 0;
    std::size_t started = 0;
    std::size_t on_warm = 0;
    std::size_t ended = 0;
    for (const Trial& trial : trials) {
        const Measurement* measured = trial.measurement();
        if (measured == nullptr) continue;
        const auto seconds = [&](std::string_view name) { return value_in(measured->metrics, name).value_or(0); };
        loads += seconds("trial_measure_seconds");
        warm_up += seconds("trial_warm_up_seconds");
        if (const auto start = value_in(measured->metrics, "trial_start_seconds")) {
            starts += *start;
            ++(*start > 0 ? started : on_warm);
        }
        if (const auto part = value_in(measured->metrics, "trial_saved_seconds")) {
            saved += *part;
            ++ended;
        }
    }
    if (loads <= 0) return "";
    std::string text = started > 0 ? "starts " + spent_text(starts) + ", " : "";
    text += "warm-up " + spent_text(warm_up) + ", load tests " + spent_text(loads);
    if (started > 0) saved += static_cast<double>(on_warm) * starts / static_cast<double>(started);
    if (ended + on_warm == 0) return text;
    text += "; saved about " + spent_text(saved) + ": ";
    if (ended > 0) text += counted_text(ended, "trial") + " ended early";
    if (on_warm > 0) text += (ended > 0 ? ", " : "") + std::to_string(on_warm) + " on a server that was there";
    return text;
}

}  // namespace servetune
