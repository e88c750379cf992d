// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/comparable_figures.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/detail/trial/standing.hpp"
#include "servetune/detail/trial/worst_workload.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// The search trials of a history, gathered by configuration in the order of their first trial.
/// Points into the history, which must outlive it. Depends on the trials' ids, never on the order
/// in which they were told.
class Standings {
public:
    /// `usual`: the default configuration; nothing: that of the first trial.
    Standings(std::span<const Trial> history, const Objective& objective, const Decision& decision,
              const std::optional<Configuration>& usual = {});
    Standings(std::vector<Trial>&&, const Objective&, const Decision&,
              const std::optional<Configuration>& = {}) = delete;

    [[nodiscard]] const std::vector<Standing>& all() const { return standings_; }
    /// All of the search, by id.
    [[nodiscard]] const std::vector<const Trial*>& trials() const { return trials_; }
    /// Null when the configuration was never asked.
    [[nodiscard]] const Standing* find(const Configuration& configuration) const {
        const auto found = index_.find(configuration);
        return found == index_.end() ? nullptr : &standings_[found->second];
    }
    /// The relative noise of one measurement that the estimates use.
    [[nodiscard]] double noise() const { return noises_.front(); }
    /// The same of each goal, the leading one first.
    [[nodiscard]] const std::vector<double>& noises() const { return noises_; }
    /// By which the figures of goal k are compared.
    [[nodiscard]] const FigureScale& scale(std::size_t k = 0) const { return scales_[k]; }
    /// How the machine changed, by the measurements of the default in goal k.
    [[nodiscard]] const Drift& drift(std::size_t k = 0) const { return drifts_[k]; }
    /// Of goal k in the measurements after the first, those that a configuration was not picked
    /// for; nothing where there are none.
    [[nodiscard]] std::optional<Estimate> measured_again(const Standing& standing,
                                                         std::size_t k = 0) const {
        if (standing.measured() < 2) return std::nullopt;
        return estimate_of(standing.goals[k], k, 1);
    }
    /// What trial `id` of a configuration measured in goal k, the machine's drift with it; nothing:
    /// no figure that counts.
    [[nodiscard]] std::optional<double> as_measured(const Standing& standing, std::uint64_t id,
                                                    std::size_t k = 0) const {
        const GoalFigures& figures = standing.goals[k];
        const auto at =
            std::find(figures.places.begin(), figures.places.end(), static_cast<double>(id));
        if (at == figures.places.end()) return std::nullopt;
        return figures.measured[static_cast<std::size_t>(at - figures.places.begin())];
    }
    /// The gain of one estimate over another in goal k with its interval by Student's t, as one of
    /// `comparisons` that hold together: by the spread of all repeated measurements, nothing
    /// assumed. No interval where none was repeated.
    [[nodiscard]] Gain measured_gain(const Estimate& candidate, const Estimate& base, std::size_t k,
                                     std::size_t comparisons) const;
    /// Configurations that were measured more than once: what the noise was learned from. 0: it is
    /// the assumed one.
    [[nodiscard]] std::size_t replicated() const {
        return static_cast<std::size_t>(std::count_if(
            standings_.begin(), standings_.end(),
            [](const Standing& standing) { return standing.leading().total_runs() > 1; }));
    }
    /// The passing configuration with the best mean in the leading goal; ties: one that is better
    /// in the others, then the one asked first. Null when none passes.
    [[nodiscard]] const Standing* best() const;
    /// The passing configurations whose means no other passing one beats in all goals together; the
    /// best in the leading goal first.
    [[nodiscard]] std::vector<const Standing*> front() const;

private:
    /// Of the values from number `first` on. Runs behind one figure that spread more than the
    /// study's noise are believed over it.
    [[nodiscard]] Estimate estimate_of(const GoalFigures& figures, std::size_t k,
                                       std::size_t first = 0) const;
    /// Of each limit the workloads on which some measurement has its figure.
    using Judged = std::vector<std::set<std::string>>;
    static Judged judged_anywhere(const std::vector<Standing>& standings,
                                  const Objective& objective);
    static void judge(Standing& standing, const Objective& objective, const Decision& decision,
                      const Judged& judged);
    static std::string broken_limit(const Measurement& measurement, const Objective& objective,
                                    const Judged& judged);
    void guard(const Decision& decision);
    /// ln of goal k in each workload, more is better: the mean of what is believed, without drift.
    [[nodiscard]] std::map<std::string, double> by_workload(const Standing& standing, std::size_t k,
                                                            const Decision& decision) const;
    void take_off_drift(std::size_t k, const Decision& decision);
    /// The means of all goals, turned so that more is better.
    [[nodiscard]] std::vector<double> turned_means(const Standing& standing) const;

    std::vector<const Trial*> trials_;
    std::vector<Standing> standings_;
    std::map<Configuration, std::size_t> index_;
    std::optional<std::size_t> default_{};  ///< where the default is in `standings_`
    std::vector<double> noises_{};
    std::vector<FigureScale> scales_{};
    std::vector<Spread> spreads_{};  ///< of each goal: how repeated measurements spread
    std::vector<Drift> drifts_{};
    std::vector<Goal> goals_;
};

}  // namespace servetune
