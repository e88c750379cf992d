// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"
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
    std::vector<std::string>
        changes{};  ///< `max_num_seqs = 512`; several where nobody can say which of them gained what
    Configuration to{};
    LadderGain gain{};  ///< over the step before
    std::optional<LadderGain>
        alone{};  ///< of the change on the default; nothing: not known, or the rules forbid it
    std::optional<LadderGain> last{};  ///< of the change as the last one; nothing as above
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
/// before it, so two more are told: as the first change, and as the last.
struct Ladder {
    std::vector<LadderStep> steps{};
    Gain total{};
    /// ln of what the changes would come to if each gave what it gives alone, less ln of the total;
    /// nothing where one of them is not known.
    std::optional<double> not_together{};
    /// How far that may be off: the reaches of all 95 % intervals in it, in squares; nothing where
    /// one has none.
    std::optional<double> not_together_reach{};

    [[nodiscard]] bool all_measured() const;
};

/// Nothing where there is no gain over the default. `outlook` says nothing below its floor: changes
/// that only it could tell apart are then one step.
std::optional<Ladder> ladder_of(const ReportView& view, const Outlook& outlook);

}  // namespace servetune
