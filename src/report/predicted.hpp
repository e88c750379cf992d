// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// What the cost model expected of the leading goal's figure, beside what was measured.
struct Predicted {
    struct Row {
        Configuration configuration{};
        double measured = 0;
        double shipped = 0;  ///< predicted before any trial
        std::optional<double>
            fitted{};  ///< predicted by the model fitted to the trials before it; nothing: there was none
    };
    std::string by{};         ///< the model as it is fitted now, in words
    std::vector<Row> rows{};  ///< in the order of the trials
    double shipped_error =
        0;  ///< median of |predicted / measured - 1|, over the rows that have both predictions
    double fitted_error = 0;  ///< the same after the fit
    std::vector<std::string>
        doubts{};  ///< why the figures that ship may be wrong on this chip, a sentence each
};

/// Nothing where no source of the study can be fitted, or the goal's figure is not what the source
/// predicts (a percentile above the median, a load that was looked for).
std::optional<Predicted> predicted_of(const ReportView& view);

}  // namespace servetune
