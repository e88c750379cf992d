// SPDX-License-Identifier: Apache-2.0
// One contender on one task with one seed, and what came of it as a line of a CSV file.
#pragma once

#include "contender.hpp"
#include "task.hpp"

#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace servetune::convergence {

struct RunKey {
    std::string task;
    std::string contender;
    double noise_cv = 0;
    std::size_t budget = 0;
    std::uint64_t seed = 0;

    friend auto operator<=>(const RunKey&, const RunKey&) = default;
};

struct Run {
    RunKey key{};
    std::size_t trials = 0;       ///< fewer than the budget: it was done before
    std::size_t crashes = 0;      ///< trials without a number, broken limits not counted
    std::size_t repeats = 0;      ///< trials of a configuration that was measured before
    std::size_t infeasible = 0;   ///< answers that broke a known constraint
    double ask_seconds = 0;       ///< of all asks, the making of the strategy included
    double last_ask_seconds = 0;  ///< median of the last five asks
    /// after each trial: of the configuration with the best mean among those that pass
    std::vector<double> regret_best_mean{};
    std::vector<double> regret_recommended{};  ///< after each trial, of what `recommend` says
    std::vector<double> seconds{};  ///< after each trial: what all trials took, asks not counted
    std::size_t arrived = 0;  ///< the first trial after which the best mean is truly good; 0: never
    /// Measured configurations that the model predicted from all others, at the look, and how many
    /// of them lay in their 50 % and in their 90 % intervals; 0 of contenders without a model.
    std::size_t predicted = 0, in_half = 0, in_nine_tenths = 0;
    /// one letter a trial: d default, s start, g gain, l to learn, r again, p a peer's; capital: it
    /// crashed
    std::string trace{};
};

/// As long as `key.budget`, looked at once for each of `looks`, ascending, the last of which is the
/// budget: a contender that does not know its budget would have done the same with a smaller one.
/// Answers that broke a known constraint and the seconds are those up to the look. `workers`: so
/// many trials are under way at once, and whichever ends first is told first; trials are then
/// counted as they are told. A peer takes one at a time.
std::vector<Run> run(const Task& task, Contender& contender, const RunKey& key,
                     const std::vector<std::size_t>& looks, std::size_t workers = 1);

/// The parts between separators; of nothing none.
std::vector<std::string> split(const std::string& text, char separator);

/// After `trial` trials, or after the last of a run that ended sooner; 1 where there is none.
double at_trial(const std::vector<double>& curve, std::size_t trial);

/// How many trials had ended after so many seconds of trials.
std::size_t trials_within(const Run& run, double seconds);

std::vector<Run> read_runs(const std::filesystem::path& file);
/// Appends and flushes: what is in the file is finished.
void append_run(const std::filesystem::path& file, const Run& run);

}  // namespace servetune::convergence
