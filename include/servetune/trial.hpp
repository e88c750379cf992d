// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/outcome.hpp"

#include <concepts>
#include <cstddef>
#include <memory>

namespace servetune {

/// An outcome as it was told, or nothing yet. Never changed afterwards, so copies of a trial share
/// it: a hundred metrics by name take 10 KiB, and journal, study and strategy each hold the
/// history.
class SharedOutcome {
public:
    SharedOutcome() = default;
    template <class Told>
    // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint leaves copies alone
    requires std::constructible_from<Outcome, Told> SharedOutcome(Told&& outcome)
        : outcome_(std::make_shared<const Outcome>(std::forward<Told>(outcome))) {
    }  // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool has_value() const { return outcome_ != nullptr; }
    explicit operator bool() const { return has_value(); }
    const Outcome& operator*() const { return *outcome_; }
    friend bool operator==(const SharedOutcome& a, const SharedOutcome& b) {
        return a.outcome_ == b.outcome_ || (a.outcome_ && b.outcome_ && *a.outcome_ == *b.outcome_);
    }

private:
    std::shared_ptr<const Outcome> outcome_{};
};

/// What a trial is measured for. The text `Trial::why` is for people and decides nothing.
enum class Purpose {
    search,
    smaller_command,  ///< the best of the search without settings that seem to do nothing
    confirm,       ///< a round of what looks best and the default, after the search (Confirmation)
    drift_check,   ///< the default again
    worker_check,  ///< the default on all workers at once (WorkersRun)
    cold_start,    ///< what is to be recommended, without a cache
    report,        ///< a report workload
    stress         ///< loads that what is recommended has to survive (StudyOptions::stress)
};

inline constexpr auto purposes =
    enum_names<Purpose>("search", "smaller_command", "confirm", "drift_check", "worker_check",
                        "cold_start", "report", "stress");

/// What stands for a workload in a trial of a stress. No workload can be called so.
inline constexpr std::string_view stress_workload = "(stress)";

/// One evaluation of one configuration, from asked through started to told.
struct Trial {
    std::uint64_t id = 0;  ///< from 0, in the order of asking; trial 0 is the default configuration
    Configuration configuration{};
    /// empty: the workloads of the objective; else the report workload that this trial measures
    std::string workload{};
    std::uint64_t seed =
        0;  ///< of the load; the n-th measurement of every configuration has the same one (paired)
    std::string why{};  ///< the strategy's reason, for people
    SharedOutcome outcome{};

    // Seconds since 1970-01-01 UTC; absent until it happened.
    double asked_at = 0;
    std::optional<double> started_at{};
    std::optional<double> told_at{};

    /// Starts whose end is not known: of an open trial that an earlier process left, how often a
    /// process died of it.
    std::size_t unended_starts = 0;

    /// What of the surroundings of its last start can change its speed, by name; null: not known.
    std::shared_ptr<const std::map<std::string, std::string>> environment{};

    Purpose purpose = Purpose::search;

    [[nodiscard]] bool told() const { return outcome.has_value(); }
    /// Whether it belongs to the search (strategies look at these only) or to the report.
    [[nodiscard]] bool of_search() const { return workload.empty(); }
    [[nodiscard]] const Measurement* measurement() const {
        return outcome ? std::get_if<Measurement>(&*outcome) : nullptr;
    }
    [[nodiscard]] const Failure* failure() const {
        return outcome ? std::get_if<Failure>(&*outcome) : nullptr;
    }
    /// Whether its configuration did not survive a stress.
    [[nodiscard]] bool fell() const {
        return purpose == Purpose::stress && failure() != nullptr && teaches(failure()->kind);
    }
    /// Whether it is of a check of the workers and has no figure, as where the check was
    /// interrupted: it spends no budget, and no strategy sees it.
    [[nodiscard]] bool is_interference_check() const {
        return purpose == Purpose::worker_check && measurement() == nullptr;
    }
    /// What the trial took, start to end; 0 while it is not told.
    [[nodiscard]] double cost_seconds() const {
        return told_at && started_at ? *told_at - *started_at : 0;
    }
};

}  // namespace servetune
