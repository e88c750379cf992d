// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "predict/bottleneck.hpp"
#include "report_view.hpp"

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
    std::vector<LimitMargin>
        limits{};  ///< those that refuse something better first, then the narrowest share of the bound
    std::vector<AtTheEnd> at_the_end{};
    std::vector<ResourceGain> resources{};  ///< empty: `no_resources` says why
    std::string no_resources{};
    std::vector<std::string> doubts{};  ///< of the cost model
};

/// Of the recommended configuration, or of the default where that is kept; nothing where neither
/// can be served.
std::optional<WhatLimits> what_limits(const ReportView& view);

}  // namespace servetune
