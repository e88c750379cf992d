// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "load/server_window.hpp"
#include "load/traffic_judge.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <nlohmann/json.hpp>

#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// A study as `autotune watch` needs it: whose names to read, and what to hold a server against.
struct WatchedStudy {
    const Engine* engine = nullptr;  ///< of what is recommended; points into the setup
    Configuration recommended{};     ///< what should be served
    ExpectedTraffic
        expected{};  ///< as its load tests measured it, else as its workloads ask for it
    std::vector<std::string> notes{};  ///< what is not compared, and why
};

/// Throws UsageError for a study without commands of an engine, and for an engine whose file names
/// no counters.
WatchedStudy watched_study(const StudySetup& setup, std::span<const Trial> trials);

/// What a new study of the traffic that is there now would begin with.
struct RetuneAdvice {
    std::vector<std::string> lines{};  ///< for a person
    nlohmann::ordered_json json{};     ///< `workload`, `predicted`, `matters`
};

/// The workload of that traffic, as a study's file has it; what the cost model, fitted to the
/// study's trials, expects most of under it; and the parameters that the trials showed to matter.
/// Each part that cannot be said is a line with the reason. Takes seconds; `setup` is as before
/// afterwards.
RetuneAdvice retune_advice(StudySetup& setup, std::span<const Trial> trials,
                           const WatchedStudy& study, const ServerWindow& seen,
                           const std::stop_token& stop);

}  // namespace servetune
