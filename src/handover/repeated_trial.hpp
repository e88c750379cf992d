// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kept_load_test.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A trial's outcome once more, from what it was made of.
struct RepeatedTrial {
    std::optional<Measurement>
        measurement{};  ///< the journal's, with what was repeated in its place; nothing: see `why_not`
    std::size_t figures = 0;   ///< that were repeated
    std::size_t requests = 0;  ///< they are of
    std::vector<std::string>
        differs{};          ///< a line for each figure and finding that is not the journal's
    std::string why_not{};  ///< why nothing was repeated; empty: something was
};

/// Repeats statistics and audit of a trial from the raw requests of its load tests, in their order;
/// and, where its load was looked for, the search. Figures of the machine (power, seconds of the
/// trial) and of the quality gate are not in requests and stay. Figures agree that differ by less
/// than 1e-9 of themselves: another compiler may sum otherwise. Throws nothing for what was
/// tampered with: that is in `differs`.
RepeatedTrial repeated_trial(const StudySetup& setup, const Trial& trial,
                             std::vector<KeptLoadTest> tests);

/// Whether a study's figures come from a table or a model that it holds: they are repeated by
/// asking again, without a machine.
[[nodiscard]] bool repeats_by_asking(const StudyFile& file);

/// The same of such a study. Not const: its evaluator is asked.
RepeatedTrial asked_again(StudySetup& setup, const Trial& trial);

}  // namespace servetune
