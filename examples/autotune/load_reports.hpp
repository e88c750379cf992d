// SPDX-License-Identifier: Apache-2.0
// What `bench` and `capacity` print.
#pragma once

#include "commands.hpp"
#include "load/capacity.hpp"
#include "servetune/load_test.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// What a load test says to people: the classic block, then what that block cannot say: intervals,
/// whether the numbers may be believed, how the client itself kept up, why requests failed.
std::string bench_report(const LoadTestResult& result, const std::string& block);

/// What the audit found, a line each.
std::string findings_lines(const Validity& validity, std::string_view indent = "  ");

/// The JSON of a result with verdict, findings, intervals and the run's own facts added under
/// `servetune`.
std::string with_verdict(const std::string& json, const LoadTestResult& result, std::uint64_t salt);

/// What a server does under several loads, and the largest that keeps the limits where it was
/// looked for.
struct CapacityReport {
    std::vector<Limit> limits{};
    Arrival arrival{};  ///< of the search: which unit its levels have
    std::vector<LoadPoint> points{};
    std::optional<Capacity> found{};

    /// `at`: the arrivals that it was measured under.
    void add(LoadPoint point, const Arrival& at);
    /// Of the load that is the answer; of a sweep the gravest.
    [[nodiscard]] Verdict verdict() const;
    /// One point of the table, without its head.
    [[nodiscard]] std::string line_of(const LoadPoint& point) const;
    [[nodiscard]] std::string text() const;
    /// What the audit found of a point, a line each; empty: nothing.
    [[nodiscard]] std::string findings_of(const LoadPoint& point) const;
    /// One JSON object (docs/reference/json-output.md).
    [[nodiscard]] std::string json() const;
};

}  // namespace autotune
