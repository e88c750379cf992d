// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <utility>

namespace servetune {

inline bool is_time(std::string_view metric) {
    return MetricKey::of(metric).name.ends_with("_seconds");
}

/// A figure as people read it: a time with three digits and its unit, `729 ms`, `10.8 s`; others
/// without one, which the metric's name says: `11527`, `0.9875`. `digits` above 3: as many as are
/// there, at most so many.
inline std::string figure_text(std::string_view metric, double value, int digits = 3) {
    if (is_time(metric)) {
        const bool short_time = std::abs(value) < 1;
        if (short_time) value *= 1e3;
        const double size = std::abs(value);
        return (digits > 3 ? significant_text(value, digits)
                           : number_text(value, size < 10    ? 2
                                                : size < 100 ? 1
                                                             : 0)) +
               (short_time ? " ms" : " s");
    }
    if (digits > 3 || MetricKey::of(metric).name.ends_with("_ratio"))
        return short_number_text(value, std::max(digits, 4));
    return number_text(value, std::abs(value) < 1e3 ? 2 : 0);
}

/// What people call a metric, as the metric's name: `ttft_p95`, `p95_ttft` and `ttft_p95_ms` are
/// `time_to_first_token_p95_seconds`; `tpot`, `itl` and `e2el` are the other times (the mean, where
/// no statistic is named), `output_throughput` and the like the rates, `throughput` alone that of
/// all tokens. Any other word stays as it is. A workload behind `@` stays.
std::string metric_of_word(std::string_view word);

/// Whether less of a metric of load tests is better, as its name tells: times, power, energy,
/// prices, failures and drops in quality. Of a workload (`name@workload`) too.
inline bool less_is_better(std::string_view metric) {
    const std::string_view name = MetricKey::of(metric).name;
    return name.ends_with("_seconds") || name.ends_with("_drop") || name.ends_with("_watts") ||
           name.starts_with("joules_per_") || name.starts_with("usd_") ||
           name.starts_with("failed_");
}

/// The bound of a metric, in the metric's own unit: `500ms`, `2 s`, `1.5min` of a metric in
/// seconds, `99%` of a ratio, share or drop, or a plain number, which is in milliseconds where
/// `in_milliseconds`. Nothing for what is none, and for a unit that the metric does not have.
std::optional<double> bound_of_text(std::string_view text, std::string_view metric,
                                    bool in_milliseconds = false);

}  // namespace servetune
