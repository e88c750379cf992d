// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <span>

namespace servetune {

/// Seconds that a trial of this configuration is expected to take, start to stop: of a study that
/// starts engines or loads a server that runs. Without a history by the cost model alone. With one
/// the model is fitted to it (`factors_of`), its load tests last as long as measured ones did in
/// the median, and start, warm-up and stop take what they took. Nothing: the engine would not start
/// on paper, or nobody loads a server. Throws Error where the cost model does not know the chip or
/// the model (`simulated`).
[[nodiscard]] std::optional<double> expected_trial_seconds(const StudySetup& setup,
                                                           const Configuration& configuration,
                                                           std::span<const Trial> history = {});

}  // namespace servetune
