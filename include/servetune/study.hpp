// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/budget.hpp"
#include "servetune/detail/study/ask_result.hpp"
#include "servetune/detail/study/observer.hpp"
#include "servetune/detail/study/recommendation_text.hpp"
#include "servetune/detail/study/study_options.hpp"
#include "servetune/detail/study/study_settings.hpp"
#include "servetune/detail/study/summary.hpp"
#include "servetune/detail/study/trial_index.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/journal.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Tuning, from the first trial to the recommendation. It owns trial ids and seeds; each step goes
/// into the journal. Once the strategy has finished, or what a budget leaves for it is spent, what
/// looks best is confirmed (Confirmation), whatever the strategy, where measuring again informs.
///
/// In the shortest way it owns its space, the Bayesian strategy and the journal
/// (examples/01_optimize.cpp):
///
///     Study study({.parameters = {choice("backend", {"a", "b"})}, .maximize = "tokens_per_second", .trials = 25});
///     std::cout << study.optimize(measure);
/// With parts of your own, by hand:
///
///     Study study(problem, strategy, journal);
///     while (const auto trial = study.ask(budget)) study.tell(trial->id, measure(trial->configuration));
///     use(study.recommendation());
/// or `study.run(evaluator, budget)`. A journal that already holds trials is resumed: both ways
/// first hand out again the trials that an earlier process asked or started but did not tell.
/// Strategies are pure functions of the history, so a killed study ends as any other. A trial that
/// kills its process twice has failed. Strategy and journal must outlive it. Not thread safe.
class Study {
public:
    using Options = StudyOptions;

    /// Owns its parts; link servetune::search. Throws as Problem, SqliteJournal::open and
    /// Limit::parse.
    explicit Study(const StudySettings& settings);
    Study(const Problem& problem, const Strategy& strategy, Journal& journal)
        : Study(problem, strategy, journal, Options{}) {}
    Study(const Problem& problem, const Strategy& strategy, Journal& journal, Options options);

    Study(const Problem&, const Strategy&&, Journal&) = delete;
    Study(const Problem&, const Strategy&&, Journal&, Options) = delete;
    Study(const Study&) = delete;
    /// Trials that are under way are recorded as interrupted: the process does not die of them.
    ~Study();

    /// The next trial, recorded as asked; or waiting, while the strategy needs the result of a
    /// trial under way; or finished. First come the trials that an earlier process left open,
    /// oldest first, except those whose configurations the space no longer has. Such a trial that
    /// had been started is recorded as started again: its length is not counted from the process
    /// that died.
    AskResult ask();
    /// The same within a budget, whose clock starts when the study is made: finished once it is
    /// spent or nothing is left to confirm, and waiting while the trials under way would spend it.
    /// Throws UsageError for a budget that cannot be.
    AskResult ask(const Budget& budget);
    /// A trial of the caller's own choice, recorded as asked: to tell what was measured before, or
    /// what somebody wants measured. A study without trials gets the default configuration as trial
    /// 0 all the same. Throws SpaceError for what is no feasible configuration of the space.
    Trial propose(Configuration configuration, std::string why, Purpose purpose = Purpose::search);
    void start(std::uint64_t id);
    /// Throws UsageError for an unknown or already told trial, and for a measurement without a
    /// metric of the objective that none before had either (`missing_metric`); nothing is recorded
    /// then. A measurement with a value or standard error that is not finite, or a negative
    /// standard error, becomes Failure{invalid_result}.
    void tell(std::uint64_t id, Outcome outcome);

    /// Measures trials until what looks best is confirmed or the budget of the settings is spent.
    /// `measure` gives the figure of the objective, or Metrics. An exception of it is a failed
    /// trial, which the strategy learns from. Link servetune::search.
    Recommendation optimize(const std::function<double(const Configuration&)>& measure);
    Recommendation optimize(const std::function<Metrics(const Configuration&)>& measure);

    /// Evaluates until what looks best is confirmed, the budget is spent or `stop` is set; then the
    /// report workloads, as far as the budget's time allows: where it ends them, that is the run's
    /// reason. An exception of the evaluator, the strategy, the journal or the recommendation ends
    /// the run with StopReason::error, and so does a budget that cannot be; `run` never throws a
    /// std::exception. The trial that was interrupted stays open.
    Summary run(Evaluator& evaluator, const Budget& budget = {}, const std::stop_token& stop = {},
                Observer* observer = nullptr);

    /// What `run` does first: takes up the open trials, heeds whether the evaluator's replicates
    /// inform, and tells as failed what killed its process twice.
    void prepare(const Evaluator& evaluator, Observer* observer);
    [[nodiscard]] const Problem& problem() const { return problem_; }

    /// Why no further trial may be started within this budget, `seconds` after the run's begin;
    /// nothing: one may.
    [[nodiscard]] std::optional<StopReason> spent(const Budget& budget, double seconds) const;
    [[nodiscard]] std::size_t in_hand()
        const;  ///< trials of the search that were handed out here and are not told
    [[nodiscard]] std::size_t told_in_search() const { return index_.told_in_search(); }
    /// The oldest trial of the search with this configuration that is not told; nothing: there is
    /// none.
    [[nodiscard]] std::optional<std::uint64_t> open_trial(
        const Configuration& configuration) const {
        return index_.open_trial(configuration);
    }
    [[nodiscard]] const std::vector<Trial>& trials() const { return trials_; }
    [[nodiscard]] Recommendation recommendation() const {
        return recommend(problem_, search_history(problem_, trials_));
    }

private:
    /// The part of `spent` that looks at the clocks: whether there is time for `trials` more.
    [[nodiscard]] std::optional<StopReason> time_spent(const Budget& budget, double seconds,
                                                       double trials = 1) const;
    /// Trials that there is time for, as long as the longest so far each.
    [[nodiscard]] double trials_in_time(const Budget& budget, double seconds) const;
    /// What a trial is taken to last.
    [[nodiscard]] double trial_seconds(const Budget& budget) const {
        return index_.longest_seconds() > 0 ? index_.longest_seconds() : budget.first_trial_seconds;
    }
    [[nodiscard]] std::string why_spent(const Budget& budget, StopReason reason) const;
    /// Whether the search may ask for another trial: what the confirmation needs is kept.
    [[nodiscard]] bool search_goes_on(const Budget& budget, double seconds,
                                      std::span<const Trial> history) const;
    AskResult next_to_confirm(const Budget& budget, double seconds, std::span<const Trial> history,
                              const AskResult::Finished& searched);
    /// Whether the space (still) has the configuration of an open trial.
    [[nodiscard]] bool in_space(std::uint64_t id) const {
        return !trials_[id].of_void_check() && problem_.space.feasible(trials_[id].configuration);
    }
    void take_up_open_trials();
    void check_feasible(const Configuration& configuration,
                        const std::string& who) const;  ///< throws SpaceError
    void tell_deadly(Observer* observer);
    const Trial& add(Configuration configuration, Purpose purpose, std::string why,
                     std::string workload = "");
    /// What `ask` answers; a trial that had been started is not started again.
    AskResult next(const Budget& budget, double began);
    /// What `ask` does with it.
    AskResult handed_out(AskResult asked);
    /// Why nothing is to be asked within a budget whose clock began at `began`; `since`: the first
    /// trial that counts for `same_failures`.
    [[nodiscard]] std::optional<AskResult::Finished> ended(const Budget& budget, double began,
                                                           std::size_t since) const;
    /// False: stopped by the user during the trial, which then stays open.
    bool evaluate(const Trial& trial, Evaluator& evaluator, const std::stop_token& stop,
                  Observer* observer);
    AskResult::Finished search(Evaluator& evaluator, const Budget& budget, double began,
                               const std::stop_token& stop, Observer* observer);
    /// What is to be recommended, from a cold start, then on the report workloads. Why it ended
    /// before all were measured; nothing: they are.
    std::optional<StopReason> confirm_and_report(Evaluator& evaluator, const Budget& budget,
                                                 double began, const std::stop_token& stop,
                                                 Observer* observer);

    struct Owned;
    static std::shared_ptr<Owned> owned(const StudySettings& settings);
    Study(std::shared_ptr<Owned> parts, const StudySettings& settings);
    Recommendation optimize_outcomes(
        const std::function<Outcome(const Configuration&)>& outcome_of);

    std::shared_ptr<const void>
        owned_{};  ///< with settings: strategy and journal; outlives the references
    Budget budget_{};
    Problem problem_;
    const Strategy& strategy_;
    Journal& journal_;
    Options options_;
    std::vector<Trial> trials_;
    TrialIndex index_{};
    std::set<std::uint64_t>
        unoffered_{};  ///< open trials that nobody has in hand: `next` gives them out before it asks the strategy
    std::map<std::uint64_t, double>
        began_{};      ///< trials under way in this process: the steady clock at their start
    double made_ = 0;  ///< by the steady clock
    std::size_t first_here_ = 0;  ///< number of the first trial that is asked here
    bool confirming_ = false;     ///< whether a trial to confirm was asked here
};

}  // namespace servetune
