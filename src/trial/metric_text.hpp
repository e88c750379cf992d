// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"
#include "servetune/value.hpp"

#include <utility>

namespace servetune {

/// Times are shown in milliseconds, as serving benchmarks print them; everything else in its own
/// unit, which ends the metric's name.
inline bool shown_in_milliseconds(std::string_view metric) {
    return MetricKey::of(metric).name.ends_with("_seconds");
}

/// The number of a metric without its unit, for a column whose header names it.
inline std::string plain_figure_text(std::string_view metric, double value) {
    if (MetricKey::of(metric).name.ends_with("_ratio"))
        return short_number_text(value);  // what counts may be its fourth digit
    return number_text(shown_in_milliseconds(metric) ? value * 1e3 : value);
}

/// The number of a metric with its unit where the metric's name does not say it: `728.59 ms`,
/// `11527.14`.
inline std::string figure_text(std::string_view metric, double value) {
    return plain_figure_text(metric, value) + (shown_in_milliseconds(metric) ? " ms" : "");
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
