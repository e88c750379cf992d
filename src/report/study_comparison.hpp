// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <span>
#include <string>

namespace servetune {

/// A study and what it has measured.
struct StudyTrials {
    const StudySetup& setup;
    std::span<const Trial> trials;
};

/// Two studies side by side, as Markdown: verdicts, figures of the default and of what is
/// recommended, commands, the settings in which the recommendations differ, the configurations that
/// both have measured and how much faster the second study measured them, and what else is not the
/// same in the two definitions. Nothing is concluded from figures of different machines or days;
/// `compare` measures in turns for that.
std::string markdown_comparison(const StudyTrials& a, const StudyTrials& b);
/// The same as an object; its fields are in docs/reference/json-output.md.
std::string json_comparison(const StudyTrials& a, const StudyTrials& b);

}  // namespace servetune
