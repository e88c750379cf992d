// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/search/expectation.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace servetune {

/// What `autotune explain` prints, whatever strategy asked the trials
/// (docs/explanation/optimizer.md, "Reading autotune explain").
struct ExplainReport {
    std::string text;
    std::string json;        ///< docs/reference/json-output.md
    bool something = false;  ///< anything was measured that can explain
};

/// What the models expected of a trial: the lines that begin with `expected`, and the object
/// `expected`.
std::string expected_text(const TrialExplanation& trial, const Objective& objective);
nlohmann::ordered_json expected_json(const Expectation& expected);

/// What each parameter does against its default level and with which others, by models fitted to
/// the trials.
ExplainReport explain_study(const StudySetup& setup, std::span<const Trial> trials);

/// Why trial `id` was asked, what the trials told before it let expect, and what it gave. Throws
/// UsageError where there is no such trial.
ExplainReport explain_trial(const StudySetup& setup, std::span<const Trial> trials,
                            std::uint64_t id);

}  // namespace servetune
