// SPDX-License-Identifier: Apache-2.0
// What an optimizer is measured on: a space with a known truth.
#pragma once

#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/strategy.hpp"
#include "servetune/trial.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace servetune::convergence {

/// What was measured before of something like the task.
struct EarlierTable {
    std::string name;
    std::vector<Trial> rows;
};

/// A space, an objective, and what every feasible configuration truly is. Thread-safe once made.
class Task {
public:
    struct Definition {
        std::string name;
        std::string what;  ///< one sentence for people
        std::vector<Parameter> parameters;
        std::vector<Constraint> constraints{};  ///< known to every optimizer
        Objective objective{};
        std::function<Outcome(const Configuration&)> truth{};  ///< without noise
        /// What a trial takes, start to end, failures included. Null: 180 s, and 60 s where it
        /// fails.
        std::function<double(const Configuration&)> seconds{};
        std::shared_ptr<const PriorMean>
            belief{};  ///< what a cost model expects; null: there is none
        /// 0: a configuration is good within 5 % of the best; else: among this share of those that
        /// pass.
        double success_share = 0;
        bool own_default =
            false;  ///< the default is the task's own; otherwise each seed draws a passing one
        /// Strategies were tuned on it before tasks were split, so it is for development, whatever
        /// its name.
        bool known_before = false;
        std::vector<Trial> rows{};            ///< of a table: all of it
        std::vector<EarlierTable> earlier{};  ///< other machines or loads, the nearest first
    };

    /// Looks at every configuration to know the best. Throws SpaceError when none passes.
    explicit Task(Definition definition);

    [[nodiscard]] const std::string& name() const { return definition_.name; }
    [[nodiscard]] const std::string& what() const { return definition_.what; }
    [[nodiscard]] std::size_t configurations() const { return configurations_; }
    [[nodiscard]] double failing_share() const { return failing_share_; }
    [[nodiscard]] double good_share() const { return good_share_; }  ///< of all configurations
    [[nodiscard]] double best() const { return best_; }
    /// Null where nothing is believed beforehand.
    [[nodiscard]] const std::shared_ptr<const PriorMean>& belief() const {
        return definition_.belief;
    }
    [[nodiscard]] const std::vector<Trial>& rows() const { return definition_.rows; }
    [[nodiscard]] const std::vector<EarlierTable>& earlier() const { return definition_.earlier; }
    [[nodiscard]] double success_share() const { return definition_.success_share; }
    /// `development` or `test`.
    [[nodiscard]] std::string half() const;
    /// Of the space's own default, not that of a seed; 1 where a table does not have it.
    [[nodiscard]] double regret_of_default() const;

    /// The problem that one seed poses: its default configuration, and this noise told to the
    /// optimizer as the assumed one.
    [[nodiscard]] std::shared_ptr<const Problem> problem(double noise_cv, std::uint64_t seed) const;
    /// One measurement: the truth times exp(cv * normal(seed, trial)). The same (seed, trial) has
    /// the same noise for every optimizer. What limits bound is told without noise, so that no
    /// configuration passes by luck.
    [[nodiscard]] Outcome measured(const Configuration& configuration, double noise_cv,
                                   std::uint64_t seed, std::uint64_t trial) const;
    [[nodiscard]] double seconds(const Configuration& configuration) const;
    /// 1 - rate / best rate; 1 for one that does not pass.
    [[nodiscard]] double regret(const Configuration& configuration) const;
    [[nodiscard]] bool good(const Configuration& configuration) const {
        return regret(configuration) <= good_regret_;
    }

private:
    [[nodiscard]] double regret_of(const Outcome& outcome) const;

    Definition definition_;
    std::size_t configurations_ = 0;
    double failing_share_ = 0, good_share_ = 0, best_ = 0, good_regret_ = 0.05;
    mutable std::mutex mutex_;
    mutable std::map<std::pair<double, std::uint64_t>, std::shared_ptr<const Problem>> problems_;
};

/// Whether a task is in the test half, which strategies are compared on; they are tuned on the
/// others. Its name decided it before anything was run: bit 32 of the name's fingerprint (FNV-1a,
/// whose lowest bit is but a parity) is set.
bool held_back(const Task::Definition& task);

/// Functions made up here, the optimum known by listing (synthetic.cpp says what each is like).
std::vector<Task::Definition> synthetic_tasks();
/// Of the folder's NAME.csv; those that are absent are left out. Throws IoError, ParseError.
std::vector<Task::Definition> table_tasks(const std::filesystem::path& folder);
/// A part of the simulated study; the truth is kept in a file of `cache`. `threads`: to fill it.
Task::Definition simulated_h100(const std::filesystem::path& study,
                                const std::filesystem::path& cache, std::size_t threads);
/// Of the studies in a file of several documents those whose name is wanted; the truth of each in a
/// file of `cache`. Throws IoError, ParseError, UsageError.
std::vector<Task::Definition> simulated_tasks(
    const std::filesystem::path& landscapes, const std::filesystem::path& cache,
    std::size_t threads, const std::function<bool(const std::string&)>& wanted);

}  // namespace servetune::convergence
