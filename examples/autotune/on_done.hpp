// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace autotune {

/// What a run came to, for who is to be told.
struct RunEnd {
    std::string study{};
    std::string verdict{};  ///< a sentence
    std::string outcome{};  ///< a word: the verdict as report.json has it, or `error`
    std::string reason{};   ///< why it ended, as reports have it
    std::filesystem::path report{};
};

/// Runs `words` with `{study}`, `{outcome}`, `{verdict}`, `{reason}` and `{report}` replaced, for a
/// minute at most. A failure of it is said on standard error; the run's exit code does not change.
void tell_that_it_is_done(const std::vector<std::string>& words, const RunEnd& end);

}  // namespace autotune
