// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study/observer.hpp"
#include "servetune/study_file/study_file.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace autotune {

/// What a run has cost so far.
struct Spent {
    std::size_t searched = 0;   ///< told trials of the search
    std::size_t told = 0;       ///< these and those of the report
    double trials_seconds = 0;  ///< of the told trials
    double run_seconds = 0;     ///< since this run began
};
/// How long a run may still take: what the trials that are left cost at the mean cost so far, or the time until the
/// clock ends it, whichever is less; infinite where neither is known. `now`: seconds since 1970 UTC, for `until`.
double seconds_left(const servetune::Budget& budget, const Spent& spent, double now);

/// What a person sees of a running study on standard error: a line for each trial, and on a terminal two status lines
/// below (trial, time left, best with its gain over the default; what is tried).
class Progress : public servetune::Observer {
public:
    Progress(const servetune::StudySetup& setup, const servetune::Budget& budget);
    ~Progress() override;

    void resumed(std::span<const servetune::Trial> history) override;
    void started(const servetune::Trial& trial) override;
    void told(const servetune::Trial& trial, std::span<const servetune::Trial> history) override;

private:
    /// What is tried, told by what is changed.
    [[nodiscard]] std::string subject(const servetune::Trial& trial) const;
    [[nodiscard]] std::string left() const;
    void add_up(std::span<const servetune::Trial> history);

    const servetune::StudySetup& setup_;
    servetune::Budget budget_;
    double began_;
    Spent spent_{};  ///< without `run_seconds`
    std::string incumbent_;
};

}  // namespace autotune
