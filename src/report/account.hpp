// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"
#include "servetune/explanation.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// How far what would be served is from one of the study's limits.
struct LimitMargin {
    Limit limit{};
    std::string workload{};  ///< empty: the only one
    double value = 0;        ///< the worst of its measurements
    double margin = 0;       ///< in the metric's unit; negative: broken
    /// The best configuration with a better figure that this limit refuses, and how much better:
    /// the limit costs that much. Nothing: it refuses none that is better.
    std::optional<Configuration> refuses{};
    std::optional<Gain> costs{};
};

/// A parameter whose recommended value was changed to the end of what the study searched.
struct AtTheEnd {
    std::string parameter;
    Value value;
    bool largest = true;
};

/// What keeps what would be served from being faster.
struct WhatLimits {
    /// those that refuse something better first, then the narrowest share of the bound
    std::vector<LimitMargin> limits{};
    std::vector<AtTheEnd> at_the_end{};
};

/// Of the recommended configuration, or of the default where that is kept; nothing where neither
/// can be served.
std::optional<WhatLimits> what_limits(const ReportView& view);

/// What further trials would bring.
struct MoreTrials {
    FurtherGain further{};
    /// That so many trials take at the study's pace; 0: nothing is measured, so it has none.
    double seconds = 0;
    bool likely = false;  ///< a gain worth having is more likely than not
};

/// A study as a person asks about it: what the parameters do, what keeps the recommendation from
/// being better, what more time would bring. One value for `explain` and all reports: fitting the
/// models takes longer than all else.
struct Explained {
    static Explained of(const ReportView& view);

    Effects effects;
    std::optional<WhatLimits> limits{};
    std::optional<MoreTrials> more{};
    /// Why nothing is said of it; empty: something is. Figures that cannot be relied on forecast
    /// nothing, and a verdict that was settled after the search is not put in doubt.
    std::string no_more{};
};

}  // namespace servetune
