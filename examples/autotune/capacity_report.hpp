// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "load/capacity.hpp"

#include <optional>
#include <string>
#include <vector>

namespace autotune {

/// What a server does under several loads, and the largest that keeps the limits where it was
/// looked for.
struct CapacityReport {
    std::vector<servetune::Limit> limits{};
    servetune::Arrival arrival{};  ///< of the search: which unit its levels have
    std::vector<servetune::LoadPoint> points{};
    std::optional<servetune::Capacity> found{};

    /// `at`: the arrivals that it was measured under.
    void add(servetune::LoadPoint point, const servetune::Arrival& at);
    /// Of the load that is the answer; of a sweep the gravest.
    [[nodiscard]] servetune::Verdict verdict() const;
    /// One point of the table, without its head.
    [[nodiscard]] std::string line_of(const servetune::LoadPoint& point) const;
    [[nodiscard]] std::string text() const;
    /// What the audit found of a point, a line each; empty: nothing.
    [[nodiscard]] std::string findings_of(const servetune::LoadPoint& point) const;
    /// One JSON object (docs/reference/json-output.md).
    [[nodiscard]] std::string json() const;
};

}  // namespace autotune
