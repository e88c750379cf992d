// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/space/configuration.hpp"
#include "servetune/trial/outcome.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace servetune {

/// One evaluation of one configuration, from asked through started to told.
struct Trial {
    std::uint64_t id = 0;  ///< from 0, in the order of asking; trial 0 is the default configuration
    Configuration configuration{};
    std::string workload{};  ///< empty: the workloads of the objective; else the report workload that this trial measures
    std::uint64_t seed = 0;  ///< of the load; the n-th measurement of every configuration has the same one (paired)
    std::string why{};       ///< the strategy's reason, for people
    std::optional<Outcome> outcome{};

    // Seconds since 1970-01-01 UTC; absent until it happened.
    double asked_at = 0;
    std::optional<double> started_at{};
    std::optional<double> told_at{};

    [[nodiscard]] bool told() const { return outcome.has_value(); }
    /// Whether it belongs to the search (strategies look at these only) or to the report.
    [[nodiscard]] bool of_search() const { return workload.empty(); }
    [[nodiscard]] const Measurement* measurement() const { return outcome ? std::get_if<Measurement>(&*outcome) : nullptr; }
    [[nodiscard]] const Failure* failure() const { return outcome ? std::get_if<Failure>(&*outcome) : nullptr; }
    /// What the trial took, start to end; 0 while it is not told.
    [[nodiscard]] double cost_seconds() const { return told_at && started_at ? *told_at - *started_at : 0; }
};

}  // namespace servetune
