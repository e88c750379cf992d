// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/budget.hpp"
#include "servetune/evaluator.hpp"
#include "servetune/journal.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/strategy.hpp"

namespace servetune {

/// Why a run came back.
enum class StopReason {
    strategy_finished,
    trials_spent,
    wall_clock_spent,
    deadline,
    nothing_starts,
    stopped_by_user,
    error
};

inline constexpr auto stop_reasons =
    enum_names<StopReason>("strategy_finished", "trials_spent", "wall_clock_spent", "deadline",
                           "nothing_starts", "stopped_by_user", "error");

/// What a run did.
struct Summary {
    StopReason reason = StopReason::error;
    std::string message{};  ///< the strategy's last word, how the first trials failed, or the error
    Recommendation recommendation{};
};

/// The answer of `Study::ask`: a trial to evaluate, waiting, or finished.
///
/// Who tells each trial before the next ask never waits, and may write `while (const auto trial =
/// study.ask())`. Who evaluates several at once distinguishes the three:
///     const AskResult asked = study.ask(budget);
///     if (asked.trial()) start(*asked.trial());
///     else if (asked.waiting()) study.tell(...);  // one of the trials under way, then ask again
///     else stop_because(asked.finished()->why);
class AskResult {
public:
    /// Nothing can be asked until a trial under way is told.
    struct Waiting {};
    /// Nothing will be asked any more.
    struct Finished {
        StopReason reason = StopReason::strategy_finished;
        std::string why{};  ///< for a person
    };

    explicit AskResult(Trial trial) : answer_(std::move(trial)) {}
    explicit AskResult(Waiting waiting) : answer_(waiting) {}
    explicit AskResult(Finished finished) : answer_(std::move(finished)) {}

    /// Null: there is none now.
    [[nodiscard]] const Trial* trial() const& { return std::get_if<Trial>(&answer_); }
    [[nodiscard]] const Trial* trial() const&& = delete;
    [[nodiscard]] bool waiting() const { return std::holds_alternative<Waiting>(answer_); }
    /// Null: it has not.
    [[nodiscard]] const Finished* finished() const& { return std::get_if<Finished>(&answer_); }
    [[nodiscard]] const Finished* finished() const&& = delete;

    /// Whether there is a trial.
    [[nodiscard]] explicit operator bool() const { return std::holds_alternative<Trial>(answer_); }
    /// The trial. Throws std::bad_variant_access where there is none.
    const Trial& operator*() const& { return std::get<Trial>(answer_); }
    const Trial& operator*() const&& = delete;
    const Trial* operator->() const { return &std::get<Trial>(answer_); }

private:
    std::variant<Trial, Waiting, Finished> answer_;
};

/// Is told what a running study does, in the study's thread, after the journal has it; for progress
/// lines and logs. Does nothing by itself. What it throws ends the run (StopReason::error); no told
/// trial is lost by that, and the next run goes on.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void resumed(std::span<const Trial> /*history*/) {}
    virtual void started(const Trial& /*trial*/) {}
    virtual void told(const Trial& /*trial*/, std::span<const Trial> /*history*/) {}
};

struct StudyOptions {
    std::uint64_t seed = 0;
    std::vector<std::string>
        report_workloads{};  ///< measured for default and recommendation once the search is over
    /// Seconds since 1970 UTC; empty: the system's clock.
    std::function<double()> now{};
    /// Monotonic seconds, arbitrary epoch, for the lengths of a run and of its trials: setting the
    /// wall clock does not change them. Empty: `now` if that is given, else the system's.
    std::function<double()> steady{};
    /// Trials are measured in other processes: that this one dies, by `kill -9` say, tells nothing
    /// of them.
    bool measured_elsewhere = false;
    std::size_t default_again_every =
        0;  ///< after so many trials of others (`default_again_is_due`); 0: never
    /// After the search `run` measures the default and what is to be recommended on
    /// `stress_workload`. What fails there, and the default does not, has failed, and the next one
    /// is confirmed. The evaluator must know that workload.
    bool stress = false;
};

/// A whole study in one place, for `Study(StudySettings)`. In `StudySettings{...}` compilers name a
/// member that there is not; in `Study({...})` they do not.
struct StudySettings {
    std::vector<Parameter> parameters;
    std::vector<std::string> rules{};  ///< each must hold, such as `tokens >= seqs` (`require`)
    std::string maximize{};  ///< the metric to maximize; exactly one of this and `minimize`
    std::string minimize{};  ///< the metric to minimize
    std::vector<std::string> limits{};  ///< such as `ttft_p95_ms <= 200` (`Limit::parse`)
    std::size_t trials = 30;            ///< Budget::trials
    std::string journal{};  ///< folder of the journal, made when missing; empty: in memory
    std::uint64_t seed = 0;
    double noise_cv = Decision{}.noise_cv;  ///< of measurements, until it is measured: Decision
    double min_gain = Decision{}.min_gain;
    /// Seconds after which `optimize` starts no trial.
    double deadline = std::numeric_limits<double>::infinity();
    std::shared_ptr<const Strategy> strategy{};  ///< null: Bayesian
};

/// Tuning, from the first trial to the recommendation. It owns trial ids and seeds; each step goes
/// into the journal. Once the strategy has finished, or what a budget leaves for it is spent, what
/// looks best is confirmed (Confirmation), whatever the strategy, where measuring again informs.
///
/// In the shortest way it owns its space, the Bayesian strategy and the journal
/// (examples/01_optimize.cpp):
///
///     Study study(StudySettings{.parameters = {choice("backend", {"a", "b"})}, .maximize = "rate"});
///     std::cout << study.optimize(measure);
/// With parts of your own, by hand:
///
///     Study study(problem, strategy, journal);
///     while (const auto trial = study.ask(budget))
///         study.tell(trial->id, measure(trial->configuration));
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
    Study& operator=(const Study&) = delete;
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
    Recommendation optimize(const std::function<double(const Configuration&)>& measure,
                            Observer* observer = nullptr);
    Recommendation optimize(const std::function<Metrics(const Configuration&)>& measure,
                            Observer* observer = nullptr);

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
    [[nodiscard]] const Problem& problem() const;

    /// Why no further trial may be started within this budget, `seconds` after the run's begin;
    /// nothing: one may.
    [[nodiscard]] std::optional<StopReason> spent(const Budget& budget, double seconds) const;
    /// Trials of the search that were handed out here and are not told.
    [[nodiscard]] std::size_t in_hand() const;
    [[nodiscard]] std::size_t told_in_search() const;
    /// The oldest trial of the search with this configuration that is not told; nothing: there is
    /// none.
    [[nodiscard]] std::optional<std::uint64_t> open_trial(const Configuration& configuration) const;
    [[nodiscard]] const std::vector<Trial>& trials() const;
    [[nodiscard]] Recommendation recommendation() const;

private:
    class Loop;
    struct Owned;
    static std::shared_ptr<Owned> owned(const StudySettings& settings);
    Study(std::shared_ptr<Owned> parts, const StudySettings& settings);
    Recommendation optimize_outcomes(const std::function<Outcome(const Configuration&)>& outcome_of,
                                     Observer* observer);

    std::shared_ptr<const void>
        owned_{};  ///< with settings: strategy and journal; outlives `loop_`
    Budget budget_{};
    std::unique_ptr<Loop> loop_;
};

}  // namespace servetune
