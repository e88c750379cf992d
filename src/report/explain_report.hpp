// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

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

/// What each parameter does against its default level and with which others, by models fitted to
/// the trials.
ExplainReport explain_study(const StudySetup& setup, std::span<const Trial> trials);

/// Why trial `id` was asked, what the trials told before it let expect, and what it gave. Throws
/// UsageError where there is no such trial.
ExplainReport explain_trial(const StudySetup& setup, std::span<const Trial> trials,
                            std::uint64_t id);

/// Why the study does not recommend what it recommends with some settings changed: a rule forbids
/// it, it was measured and is worse or refused, or what the models expect of it. `changes`:
/// parameters of the space. Throws SpaceError for a value outside its domain.
ExplainReport explain_why_not(const StudySetup& setup, std::span<const Trial> trials,
                              const Assignment& changes);

}  // namespace servetune
