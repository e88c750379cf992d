// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"
#include "search/effects.hpp"
#include "search/outlook.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A gain that was measured, or that the models expect.
struct LadderGain {
    Gain gain{};
    bool measured = true;
};

/// One change on the way from the default to what is recommended.
struct LadderStep {
    /// `max_num_seqs = 512`; several where nobody can say which of them gained what
    std::vector<std::string> changes{};
    Configuration to{};
    LadderGain gain{};  ///< over the step before
    std::optional<LadderGain>
        alone{};  ///< of the change on the default; nothing: not known, or the rules forbid it
    std::string
        refused{};  ///< why the configuration after the step cannot be served, where it was tried
};

/// The order of changes from the default to the recommended configuration, with the gain of each:
/// (1 + g1) (1 + g2) ... = 1 + the gain of the recommendation, for figures that are compared by
/// ratios; else the gains add up.
///
/// The order is greedy, as in ablation analysis (Fawcett, Hoos: "Analysing differences between
/// algorithm configurations through ablation", Journal of Heuristics 22, 2016): next comes the
/// change with the best figure, of those that were measured where there are any, else by the models
/// (ablation with surrogates; Biedenkapp et al., AAAI 2017). The gain of a change depends on those
/// before it, so that as the only change is told too.
struct Ladder {
    std::vector<LadderStep> steps{};
    Gain total{};
    [[nodiscard]] bool all_measured() const;
};

/// Nothing where there is no gain over the default. `outlook` says nothing below its floor: changes
/// that only it could tell apart are then one step.
std::optional<Ladder> ladder_of(const ReportView& view, const Outlook& outlook);

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
    /// recommended / default - 1; nothing: they are the same, or the default has no figure
    std::optional<Figure> change{};
};

struct ServingCosts {
    std::vector<ServingCost> all{};
    std::string no_dollars{};  ///< why there are none; empty: there are
    std::string no_energy{};
};

/// Of the measurements that the recommended gain is from (`ReportView::judged_means`). Nothing is
/// in it where nothing passes.
ServingCosts serving_costs(const ReportView& view);

/// What further trials would bring.
struct MoreTrials {
    FurtherGain further{};
    /// That so many trials take at the study's pace; 0: nothing is measured, so it has none.
    double seconds = 0;
    bool likely = false;  ///< a gain worth having is more likely than not
};

/// A study as a person asks about it: how the recommendation comes about, what keeps it from being
/// better, what more time would bring, what it costs. One model for `explain` and all reports.
struct Account {
    std::optional<Ladder> ladder{};
    std::optional<WhatLimits> limits{};
    std::optional<MoreTrials> more{};
    std::string no_more{};  ///< why nothing is said of it; empty: something is
    ServingCosts costs{};
};
/// Fits the models to the trials: as long as effects take.
Account account_of(const ReportView& view);

/// What takes fitting the models, once for all reports.
struct Explained {
    static Explained of(const ReportView& view);

    Effects effects;
    Account account;
};

/// What the cost model expected of the leading goal's figure, beside what was measured.
struct Predicted {
    struct Row {
        Configuration configuration{};
        double measured = 0;
        double shipped = 0;  ///< predicted before any trial
        /// predicted by the model fitted to the trials before it; nothing: there was none
        std::optional<double> fitted{};
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
