// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// What a million tokens takes with the default and with what is recommended: US dollars by
/// `hardware: {price_per_hour}`, or kWh of the GPUs' boards.
///
/// Intervals are 95 %, by Student's t, from how repeated measurements of this figure spread over
/// all configurations (relative squares, pooled); none where nothing was measured twice.
struct ServingCost {
    struct Figure {
        double value = 0;
        std::optional<double> low{}, high{};
    };
    std::string unit;    ///< `USD`, `kWh`
    std::string tokens;  ///< `output`, `total`
    std::optional<Figure> of_default{};
    Figure of_recommended{};
    std::optional<Figure>
        change{};  ///< recommended / default - 1; nothing: they are the same, or the default has no figure
};

struct ServingCosts {
    std::vector<ServingCost> all{};
    std::string no_dollars{};  ///< why there are none; empty: there are
    std::string no_energy{};
};

/// Of the measurements that the recommended gain is from (`ReportView::judged_means`). Nothing is
/// in it where nothing passes.
ServingCosts serving_costs(const ReportView& view);

}  // namespace servetune
