// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/trial/metric_key.hpp"

#include <string>
#include <string_view>

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

}  // namespace servetune
