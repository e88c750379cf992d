// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/decision.hpp"
#include "servetune/trial.hpp"

#include <iterator>
#include <numeric>
#include <set>
#include <span>

namespace servetune {

/// One workload in which the requests of a configuration had other lengths than those of the
/// default.
struct LengthMismatch {
    std::string workload{};  ///< empty: the only one
    bool output = true;      ///< the answers; false: the prompts
    double mine = 0;         ///< mean tokens a request
    double usual = 0;        ///< the same of the default

    friend bool operator==(const LengthMismatch&, const LengthMismatch&) = default;
    /// `16 output tokens a request on chat, 32 with the default`.
    [[nodiscard]] std::string text() const;
};

/// One measurement of the configuration that is measured again and again.
struct DriftCheck {
    double at = 0;         ///< its place among the trials
    double log_value = 0;  ///< ln of what was measured
};

/// How the machine's speed changed during a study, by what one configuration gave at several places
/// of it.
///
/// A straight trend and one step are tested against no change (F tests with one degree of freedom;
/// Bonferroni over both shapes and the step's places) by the noise that repeats show: how the
/// checks spread around the shape, and other configurations around theirs without its change. The
/// assumed noise proves no drift: checks are so few that they seldom contradict a wrong one. Where
/// one of the shapes is likely, be it with the assumed noise as it weighs in `pooled_noise`, the
/// level between the checks is that of a random walk with noise, whose variance is found by
/// restricted likelihood, and what is known of it at any place comes by ordinary kriging (Cressie,
/// Statistics for Spatial Data, 1993, sections 2.6 and 3.2): a step is known to lie between two
/// checks, not where.
class Drift {
public:
    static constexpr double false_alarms = 0.05;
    static constexpr std::size_t least_checks = 3;

    Drift() = default;
    /// `checks`: in any order. `noise_cv`: assumed of one measurement. `others`: what each other
    /// configuration gave.
    Drift(std::vector<DriftCheck> checks, double noise_cv,
          const std::vector<std::vector<DriftCheck>>& others = {});

    [[nodiscard]] bool real() const { return chance_ < false_alarms; }
    /// Whether it is taken off: long before a drift is proven it may make a gain that is none.
    [[nodiscard]] bool taken_off() const { return std::min(chance_, chance_as_assumed_) < 0.5; }
    /// Of as much change where there is none, by measured noise; 1 of fewer than three checks.
    [[nodiscard]] double chance() const { return chance_; }
    [[nodiscard]] std::size_t checks() const { return checks_.size(); }
    /// From the highest level at a check to the lowest, as a share of the highest; 0 where it is
    /// not real.
    [[nodiscard]] double change() const;

    /// How the checks spread around the better of both shapes: the noise, without the change.
    [[nodiscard]] Spread spread() const { return spread_; }

    /// ln of the speed at a place over the mean of the checks; 0 where no drift is taken off.
    [[nodiscard]] double offset(double at) const;
    /// Of the mean level at some places: the variance that is not known from the checks. Between
    /// two checks that is at least what it would be of one step there, of which nobody knows where:
    /// u (1 - u) d^2 a share u of the way.
    [[nodiscard]] double variance(const std::vector<double>& places) const;

private:
    [[nodiscard]] double step_deviation(double place) const;
    /// `shape`: place -> height; `places`: how many such shapes are tried.
    template <class Shape>
    void look(const Shape& shape, double places, double noise_cv,
              const std::vector<std::vector<DriftCheck>>& others);
    void test(double noise_cv, const std::vector<std::vector<DriftCheck>>& others);

    /// Of the differences to the first check, whose covariances hold no unknown level.
    [[nodiscard]] double log_likelihood(double walk) const;

    /// The variance that the walk gains from trial to trial.
    void find_walk();

    /// Weights of the checks for the mean level at some places, and its variance: with g_ij = q
    /// |t_i - t_j| / 2 and the noise s^2, (s^2 I - G) w + m 1 = -g and sum w = 1.
    [[nodiscard]] std::pair<std::vector<double>, double> kriging(
        const std::vector<double>& places) const;

    std::vector<DriftCheck> checks_{};
    double mean_ = 0;
    double chance_ = 1;
    double chance_as_assumed_ = 1;  ///< the same, the assumed noise believed
    Spread spread_{};
    double noise_variance_ = 0;
    double walk_ = 0;  ///< variance of the level's change from one trial to the next
};

/// One goal in the usable measurements of one configuration, by trial id.
struct GoalFigures {
    /// As they are judged (`FigureScale`): without the machine's drift where that is real, and no
    /// more than the share that equal work leaves of them.
    std::vector<double> values{};
    std::vector<double> measured{};  ///< the same with the drift
    std::vector<double> places{};    ///< the trials' ids
    std::vector<double> runs{};      ///< behind each value; most often 1
    Spread within{};                 ///< how the runs behind the values spread
    Estimate estimate{};             ///< meaningful when there are values
    double equal_work = 1;           ///< what equal work leaves of a gain (`share_of_equal_work`)

    [[nodiscard]] double total_runs() const {
        return std::accumulate(runs.begin(), runs.end(), 0.0);
    }
};

/// Why a configuration cannot win.
enum class Refusal {
    none,
    failed,       ///< a failure that is its own
    unusable,     ///< a result without a goal's figure, or one that cannot be compared
    limit,        ///< a limit is broken, or could not be judged
    unsound,      ///< the audit refuses its measurements
    not_its_own,  ///< only failures that are not its own
    slower,       ///< its load test was ended early
    guard,        ///< worse on a workload than `Decision::never_worse_than` allows
    other_work    ///< its requests were others than the default's
};

/// What the told trials of one configuration say together.
struct Standing {
    Configuration configuration;
    std::vector<const Trial*> trials;  ///< told and pending, by id
    std::vector<GoalFigures> goals{};  ///< one for each goal of the objective, in its order
    Refusal refusal = Refusal::none;
    std::string refused{};  ///< the refusal in words; empty: it can win
    std::vector<LengthMismatch>
        other_work{};  ///< where its requests had other lengths than the default's, beyond noise
    /// ln of what the workload that loses most keeps of the default's figure, over what
    /// `Decision::never_worse_than` allows: above 0 it is allowed. Nothing: no such rule, or
    /// nothing to compare.
    std::optional<double> guard_margin{};

    [[nodiscard]] bool told() const {
        return std::any_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    [[nodiscard]] bool pending() const {
        return !std::all_of(trials.begin(), trials.end(), [](const Trial* t) { return t->told(); });
    }
    /// Usable measurements; each has a value of every goal.
    [[nodiscard]] std::size_t measured() const { return leading().values.size(); }
    [[nodiscard]] const GoalFigures& leading() const { return goals.front(); }
    /// Of the leading goal.
    [[nodiscard]] const Estimate& estimate() const { return leading().estimate; }
    /// May win: measured, no failure, every limit known to hold, not unsound where the audit is
    /// enforced.
    [[nodiscard]] bool passes() const { return measured() > 0 && refusal == Refusal::none; }
    void refuse(Refusal reason, std::string words) {
        refusal = reason;
        refused = std::move(words);
    }
};

/// The search trials of a history, gathered by configuration in the order of their first trial.
/// Points into the history, which must outlive it. Depends on the trials' ids, never on the order
/// in which they were told.
class Standings {
public:
    /// `usual`: the default configuration. `Problem::standings` has it all.
    Standings(std::span<const Trial> history, const Objective& objective, const Decision& decision,
              const Configuration& usual);
    Standings(std::vector<Trial>&&, const Objective&, const Decision&,
              const Configuration&) = delete;

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
        const auto at = std::find(figures.places.begin(), figures.places.end(), double(id));
        if (at == figures.places.end()) return std::nullopt;
        return figures.measured[std::size_t(at - figures.places.begin())];
    }
    /// Configurations that were measured more than once: what the noise was learned from. 0: it is
    /// the assumed one.
    [[nodiscard]] std::size_t replicated() const {
        return std::size_t(std::count_if(
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
    std::vector<Drift> drifts_{};
    std::vector<Goal> goals_;
};

}  // namespace servetune
