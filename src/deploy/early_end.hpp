// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/race.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/objective.hpp"
#include "servetune/workload.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// Why workloads of a trial are not measured.
struct Hopeless {
    bool by_limit = false;  ///< a limit is broken; false: the goal cannot be reached any more
    std::string why{};      ///< for a person
};

/// Decides when a first measurement need not go on: its configuration would be worse than the best
/// by `give_up` even if each workload to come were by `give_up` better than any configuration that
/// passes was there; or a limit is broken by `give_up`. Such a configuration is not recommended.
class EarlyEnd {
public:
    /// `give_up`: a share, at least four times the noise of a measurement; 0: nothing is ended.
    /// `workloads`: those of the trial, in their order; must outlive it. Decides nothing without
    /// `to_beat`, or where the goal is one workload's figure.
    EarlyEnd(std::optional<Incumbent> to_beat, double give_up, std::vector<Limit> limits,
             const std::vector<Workload>& workloads);

    /// The rate that the workload behind `before` has to reach. Nothing: it is measured in full.
    [[nodiscard]] std::optional<RateToReach> rate_to_reach(
        const std::vector<WorkloadMetrics>& before) const;
    /// Why the workloads behind `before` are left out. Nothing: they are measured.
    [[nodiscard]] std::optional<Hopeless> left_out(
        const std::vector<WorkloadMetrics>& before) const;
    [[nodiscard]] double give_up() const { return give_up_; }
    /// The figure of the goal below which a configuration is given up.
    [[nodiscard]] double had_to_reach() const;
    /// What the left out workloads would have taken, in seconds, as with the best configuration.
    [[nodiscard]] double saved_seconds(std::size_t measured) const;
    /// What was measured, and the goal with the rest as good, beside the best there, as what was
    /// measured. Its error: what is missing differs from that by 15 % (one standard deviation; 3 to
    /// 15 % in three simulated studies).
    [[nodiscard]] Metrics whole(const std::vector<WorkloadMetrics>& before) const;

private:
    /// ln of the goal's weighted geometric mean with `before` as measured and the rest at the best
    /// figures times `factor`, without workload `skipped`, and not divided by the weights. Nothing
    /// where a figure is not known.
    [[nodiscard]] std::optional<double> sum_of_logs(const std::vector<WorkloadMetrics>& before,
                                                    double factor, std::size_t skipped) const;
    [[nodiscard]] double weights() const;

    std::optional<Incumbent> to_beat_;
    double share_ = 1;  ///< 1 + give_up for a goal that is maximized, its reciprocal for others
    double give_up_;
    std::vector<Limit> limits_;
    const std::vector<Workload>& workloads_;
};

}  // namespace servetune
