// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial.hpp"

#include <limits>
#include <span>

namespace servetune {

/// When a run ends by itself. Trials that a resumed study has already told count.
struct Budget {
    std::size_t trials =
        30;  ///< told trials of search and confirmation; the report's own measurements do not count
    /// Of this run, by the steady clock, which ends within it: no trial is started that would not
    /// be over by then, were it as long as the longest so far, of report workloads neither.
    double wall_clock_seconds = std::numeric_limits<double>::infinity();
    /// So many first trials of a run that all fail the same way, before any has ever succeeded, end
    /// it: it is not the flags. 0: never.
    std::size_t same_failures = 0;
    /// The same in seconds since 1970 UTC, by the wall clock as it is then.
    double until = std::numeric_limits<double>::infinity();
    double first_trial_seconds = 0;  ///< what a trial is taken to last as long as none was told
    /// Whether a search also ends once the best further trial is expected to gain less serving time
    /// than it takes. Only a strategy that models what is left to gain can tell.
    bool when_not_worth_it = false;
    double serves_seconds =
        30 * 86400.0;  ///< the result's life on a machine like this one: what a gain is worth

    /// Nothing: as many as there are.
    [[nodiscard]] std::optional<std::size_t> known_trials() const {
        return trials < std::numeric_limits<std::size_t>::max() ? std::optional(trials)
                                                                : std::nullopt;
    }

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// The failure that all search trials from number `since` on share, if there are `enough` of them
/// and no trial ever succeeded; else null. `enough` 0: null.
[[nodiscard]] const Failure* common_failure(std::span<const Trial> trials, std::size_t since,
                                            std::size_t enough);

}  // namespace servetune
