// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study.hpp"
#include "servetune/standings.hpp"
#include "servetune/study_file.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

namespace autotune {

/// What a run has cost so far.
struct Spent {
    std::size_t searched = 0;   ///< told trials of the search
    std::size_t told = 0;       ///< these and those of the report
    double trials_seconds = 0;  ///< of the told trials
    double run_seconds = 0;     ///< since this run began
    std::size_t at_once = 1;    ///< trials that run beside each other
    std::optional<double>
        expected{};  ///< seconds of a trial by the cost model, for as long as none is told
    std::optional<std::size_t> most{};  ///< the search's trials at the latest (`most_trials`)
};
/// Of a history, without `run_seconds`.
Spent spent_in(const servetune::StudySetup& setup, const servetune::Budget& budget,
               std::span<const servetune::Trial> history);

/// How long a run may still take: what the trials that are left cost at the mean cost so far,
/// before the first at the expected one, or the time until the clock ends it, whichever is less;
/// infinite where neither is known. `now`: seconds since 1970 UTC, for `until`.
double seconds_left(const servetune::Budget& budget, const Spent& spent, double now);

/// What a person sees of a running study on standard error: a line for each trial, and on a
/// terminal two status lines below that are written anew every second: trial, time left, best with
/// its gain over the default and the interval of that; what is tried, what happens at the moment,
/// and for how long.
///
/// With several workloads of which the worst counts, gains are those of the workload that gains
/// least.
class Progress : public servetune::Observer {
public:
    Progress(const servetune::StudySetup& setup, const servetune::Budget& budget);
    ~Progress() override;
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void resumed(std::span<const servetune::Trial> history) override;
    void started(const servetune::Trial& trial) override;
    void told(const servetune::Trial& trial, std::span<const servetune::Trial> history) override;
    /// What a trial does now. Any thread may tell.
    void phase(std::uint64_t trial, const std::string& what);

private:
    /// What is tried, told by what is changed.
    [[nodiscard]] std::string subject(const servetune::Trial& trial) const;
    [[nodiscard]] std::string left() const;
    /// What the standings say of a trial's gain; its own figure where they do not count it.
    [[nodiscard]] std::string gain_of(const servetune::Trial& trial, double figure,
                                      const servetune::Standings& standings) const;
    void keep_best(const servetune::Standings& standings);
    void add_up(std::span<const servetune::Trial> history);
    void show();
    void tick(const std::stop_token& over);

    const servetune::StudySetup& setup_;
    servetune::Budget budget_;
    double began_;
    std::optional<double> expected_{};  ///< seconds of the default's trial, by the cost model
    std::mutex mutex_{};                ///< of what follows
    Spent spent_{};                     ///< without `run_seconds`
    std::string incumbent_;
    std::string interval_;
    struct Running {
        std::string tried{};
        std::string phase{};
        double began = 0;
    };
    std::map<std::uint64_t, Running> running_{};  ///< by the trial's number
    std::size_t at_once_ = 1;                     ///< as many ran when the last one began
    std::optional<std::size_t> most_{};           ///< of trials
    std::condition_variable_any over_{};
    std::jthread ticker_{};  // last: ends before what it shows
};

}  // namespace autotune
