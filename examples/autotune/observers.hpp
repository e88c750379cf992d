// SPDX-License-Identifier: Apache-2.0
// Who watches a run: a person, a program that reads lines of JSON, and the log of its folder.
#pragma once

#include "plan.hpp"

#include "servetune/standings.hpp"
#include "servetune/study.hpp"

#include <nlohmann/json_fwd.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace autotune {

/// One line of JSON on standard output, whole or not at all: somebody reads while it is written.
/// Without secrets.
void put_event(nlohmann::ordered_json event);

/// `run --json-lines`: a JSON object in a line of standard output for everything that happens, for
/// programs that watch a run (docs/reference/json-output.md).
class EventLines : public Observer {
public:
    explicit EventLines(const StudySetup& setup) : setup_(setup) {}

    void resumed(std::span<const Trial> history) override;
    void started(const Trial& trial) override;
    void told(const Trial& trial, std::span<const Trial> history) override;
    /// What a trial does now: once for each phase, counts within it are left out. Any thread may
    /// tell.
    void phase(std::uint64_t trial, const std::string& what);
    /// A line for people.
    void said(const std::string& line);
    /// The last line: why it ended, and the report as `report --json` has it.
    void ended(std::string_view reason, const std::string& report);

private:
    const StudySetup& setup_;
    std::mutex mutex_{};
    std::map<std::uint64_t, std::string> phases_{};  ///< of the trials that run
};

/// What a run does, line by line with times and trials, in `run.log` of the study's folder: for the
/// morning after; one of 20 MiB becomes run.log.1 when the next run begins. Where it cannot be
/// written the run goes on without; said once on standard error. Passes on what it is told.
class RunLog : public Observer {
public:
    /// `next`: told the same; may be null.
    RunLog(const fs::path& folder, Observer* next);

    void say(const std::string& line);
    /// The last line of a run.
    void ends(std::string_view reason, const std::string& message);

    void resumed(std::span<const Trial> history) override;
    void started(const Trial& trial) override;
    void told(const Trial& trial, std::span<const Trial> history) override;

private:
    std::mutex mutex_{};
    std::ofstream log_{};  ///< failed: it cannot be written
    Observer* next_;
};

/// How the last run of a study's folder ended, as the last line of its log says: reason and
/// message. Empty: it says nothing, because a run is under way, was killed, or could not write its
/// log.
std::string last_end(const fs::path& folder);

/// What a run has cost so far.
struct Spent {
    std::size_t searched = 0;   ///< told trials of the search
    std::size_t told = 0;       ///< these and those of the report
    std::size_t stressed = 0;   ///< of these, under stress, which lasts about as two
    double trials_seconds = 0;  ///< of the told trials
    double run_seconds = 0;     ///< since this run began
    std::size_t at_once = 1;    ///< trials that run beside each other
    std::optional<double>
        expected{};  ///< seconds of a trial by the cost model, for as long as none is told
    std::optional<TrialsExpected> all{};  ///< trials of the search

    /// The mean; 0: none is told.
    [[nodiscard]] double each_seconds() const {
        return told > 0 ? trials_seconds / double(told + stressed) : 0;
    }
};
/// Of a history, without what the clock says.
Spent spent_in(const StudySetup& setup, const Budget& budget, std::span<const Trial> history);

/// How long a run is going to take: what the trials that are left cost at the mean cost so far,
/// before the first at the expected one, or the time until the clock ends it, whichever is less;
/// infinite where neither is known. `now`: seconds since 1970 UTC, for `until`.
double seconds_left(const Budget& budget, const Spent& spent, double now);

/// What is tried, told by what is changed.
std::string tried_text(const Problem& problem, const Trial& trial);

/// The best that passes, and what it gains over the default where that passes too. Null: none does.
/// Points into the standings.
struct BestSoFar {
    const Standing* best = nullptr;
    const Standing* base = nullptr;
    std::optional<Gain> gain{};
};
BestSoFar best_so_far(const Problem& problem, const Standings& standings);

/// What a person sees of a running study on standard error: a line for each trial, and on a
/// terminal two status lines below that are written anew every second: trial, time left, best with
/// its gain over the default; what is tried, what happens at the moment, and for how long.
class Progress : public Observer {
public:
    Progress(const StudySetup& setup, const Budget& budget);
    ~Progress() override;
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void resumed(std::span<const Trial> history) override;
    void started(const Trial& trial) override;
    void told(const Trial& trial, std::span<const Trial> history) override;
    /// What a trial does now. Any thread may tell.
    void phase(std::uint64_t trial, const std::string& what);

private:
    [[nodiscard]] std::string left() const;
    /// What the standings say of a trial's gain; its own figure where they do not count it.
    [[nodiscard]] std::string gain_of(const Trial& trial, double figure,
                                      const Standings& standings) const;
    void keep_best(const Standings& standings);
    void add_up(std::span<const Trial> history);
    void show();
    void tick(const std::stop_token& over);

    const StudySetup& setup_;
    Budget budget_;
    double began_;
    std::optional<double> expected_{};  ///< seconds of the default's trial, by the cost model
    std::mutex mutex_{};                ///< of what follows
    Spent spent_{};                     ///< without `run_seconds`
    std::string incumbent_;
    struct Running {
        std::string tried{};
        std::string phase{};
        double began = 0;
    };
    std::map<std::uint64_t, Running> running_{};  ///< by the trial's number
    std::size_t at_once_ = 1;                     ///< as many ran when the last one began
    std::condition_variable_any over_{};
    std::jthread ticker_{};  // last: ends before what it shows
};

}  // namespace autotune
