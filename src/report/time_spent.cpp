// SPDX-License-Identifier: Apache-2.0
#include "time_spent.hpp"

#include "report_view.hpp"
#include "servetune/detail/base/number_text.hpp"

#include <fmt/format.h>

#include <string_view>

namespace servetune {

std::string spent_text(double seconds) {
    constexpr double minute = 60;
    constexpr double hour = 3600;
    if (seconds < 2 * minute) return fmt::format("{:.0f} s", seconds);
    return seconds < 2 * hour ? fmt::format("{:.1f} min", seconds / minute)
                              : fmt::format("{:.1f} h", seconds / hour);
}

TimeSpent time_spent_in(std::span<const Trial> trials) {
    TimeSpent spent;
    for (const Trial& trial : trials) {
        spent.trials += trial.cost_seconds();
        const Measurement* measured = trial.measurement();
        if (measured == nullptr) continue;
        const auto seconds = [&](std::string_view name) {
            return value_in(measured->metrics, name).value_or(0);
        };
        spent.loads += seconds("trial_measure_seconds");
        spent.warm_up += seconds("trial_warm_up_seconds");
        if (const auto start = value_in(measured->metrics, "trial_start_seconds")) {
            spent.starts += *start;
            ++(*start > 0 ? spent.started : spent.on_warm);
        }
        if (const auto part = value_in(measured->metrics, "trial_saved_seconds")) {
            spent.saved += *part;
            ++spent.ended_early;
        }
    }
    if (spent.started > 0)
        spent.saved +=
            static_cast<double>(spent.on_warm) * spent.starts / static_cast<double>(spent.started);
    return spent;
}

std::string TimeSpent::text() const {
    if (loads <= 0) return "";
    std::string result = started > 0 ? "starts " + spent_text(starts) + ", " : "";
    result += "warm-up " + spent_text(warm_up) + ", load tests " + spent_text(loads);
    if (const double rest = trials - starts - warm_up - loads; rest >= 1)
        result += ", the rest " + spent_text(rest);
    if (ended_early + on_warm == 0) return result;
    result += "; saved about " + spent_text(saved) + ": ";
    if (ended_early > 0) result += counted_text(ended_early, "trial") + " ended early";
    if (on_warm > 0)
        result +=
            (ended_early > 0 ? ", " : "") + std::to_string(on_warm) + " on a server that was there";
    return result;
}

}  // namespace servetune
