// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/audit.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/detail/load/race.hpp"
#include "servetune/detail/load/statistics.hpp"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// One load test of one workload against one server.
struct LoadTest {
    Endpoint endpoint{};
    Workload workload{};
    LoadOptions options{};                ///< `ignore_eos` comes from the workload
    ServiceLimits limits{};               ///< for goodput
    std::optional<std::uint64_t> salt{};  ///< of this run (PlanOptions)
    std::optional<Handshake>
        handshake{};  ///< nothing: the server is asked what it accepts, before the run
    std::optional<Calibration>
        calibration{};  ///< nothing: the server is asked how it counts, before the run
    std::optional<RateToReach>
        to_reach{};  ///< it ends early once this is certainly lost, while it works without failures
    AuditContext known{};  ///< model, hardware, devices; the rest comes from the workload
};

/// What a load test found: how it was made, what came back, what it says and whether that may be
/// believed.
struct LoadTestResult {
    Plan plan;
    Handshake handshake{};  ///< `refused_fields` were not sent
    Calibration calibration{};
    LoadRun run{};
    std::optional<EarlyStop>
        given_up{};  ///< it ended early; the statistics are of what had come until then
    LoadStatistics statistics{};
    Validity validity{};
    std::vector<NotChecked> not_checked{};
};

/// Asks what the server accepts and how it counts, plans, sends, summarises, audits. A server that
/// refuses fields of ours is measured without them; where it counts no tokens, they are estimated.
/// The notes of the statistics and the audit say so. Throws as `try_request`, `calibrated`,
/// `plan_requests` and `generate_load` do; failed requests are data.
LoadTestResult run_load_test(const LoadTest& test, const std::stop_token& stop = {});

}  // namespace servetune
