// SPDX-License-Identifier: Apache-2.0
#include "servetune/study.hpp"

#include "base/present.hpp"
#include "base/text.hpp"
#include "clocks.hpp"
#include "confirmation.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "trial_rules.hpp"

#include <iterator>

namespace servetune {

/// What a study asks of its trials again and again, kept up to date so that a trial costs O(log n)
/// and not a walk through all of them.
class TrialIndex {
public:
    /// A trial that was asked. One that was told already counts as told.
    void add(const Trial& trial) {
        Asked& asked = asked_[{trial.workload, trial.configuration}];
        ++asked.times;
        if (trial.told()) {
            count(trial);
            return;
        }
        if (!trial.of_search()) return;
        asked.open.insert(trial.id);
        open_.insert(trial.id);
    }
    /// The outcome of a trial that was added.
    void told(const Trial& trial) {
        asked_[{trial.workload, trial.configuration}].open.erase(trial.id);
        open_.erase(trial.id);
        count(trial);
    }

    [[nodiscard]] std::size_t told_in_search() const { return told_in_search_; }
    [[nodiscard]] double longest_seconds() const {
        return longest_seconds_;
    }  ///< 0: no trial was told
    /// Trials of the search that are not told.
    [[nodiscard]] const std::set<std::uint64_t>& open() const { return open_; }
    /// How many trials of a workload (empty: the search) a configuration has had.
    [[nodiscard]] std::uint64_t times(const std::string& workload,
                                      const Configuration& configuration) const {
        const auto found = asked_.find({workload, configuration});
        return found == asked_.end() ? 0 : found->second.times;
    }
    /// The oldest trial of the search with this configuration that is not told.
    [[nodiscard]] std::optional<std::uint64_t> open_trial(
        const Configuration& configuration) const {
        const auto found = asked_.find({"", configuration});
        if (found == asked_.end() || found->second.open.empty()) return std::nullopt;
        return *found->second.open.begin();
    }

private:
    struct Asked {
        std::uint64_t times = 0;
        std::set<std::uint64_t> open{};
    };
    void count(const Trial& trial) {
        if (trial.is_interference_check() || trial.purpose == Purpose::stress) return;
        if (trial.of_search()) ++told_in_search_;
        longest_seconds_ = std::max(longest_seconds_, trial.cost_seconds());
    }

    std::map<std::pair<std::string, Configuration>, Asked> asked_{};
    std::set<std::uint64_t> open_{};
    std::size_t told_in_search_ = 0;
    double longest_seconds_ = 0;
};

Problem::Problem(SearchSpace search_space, Objective what_for, Decision how_decided)
    : parts_(std::make_shared<const Parts>(std::move(search_space))),
      space(parts_->space),
      feasible(parts_->feasible),
      objective(std::move(what_for)),
      decision(how_decided) {
    check_options("the objective", objective.why_invalid());
    check_options("the decision", decision.why_invalid());
    const auto violations = space.violations(space.default_configuration());
    if (!violations.empty())
        throw SpaceError("the default configuration (" + space.default_configuration().text() +
                         ") is not feasible: " + violations.front());
}

std::vector<Trial> search_history(const Problem& problem, std::span<const Trial> trials) {
    const bool falls = falls_count(trials, problem.space.default_configuration());
    std::vector<Trial> history;
    for (const Trial& trial : trials) {
        if (trial.of_search() ? trial.is_interference_check() : !falls || !trial.fell()) continue;
        if (!problem.space.feasible(trial.configuration)) continue;
        history.push_back(trial);
        history.back().workload.clear();
        if (trial.fell()) history.back().started_at.reset();  // no time of the search
    }
    return history;
}

class Study::Loop {
public:
    Loop(const Problem& problem, const Strategy& strategy, Journal& journal, StudyOptions options);
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    ~Loop();

    AskResult ask();
    AskResult ask(const Budget& budget);
    Trial propose(Configuration configuration, std::string why, Purpose purpose);
    void start(std::uint64_t id);
    void tell(std::uint64_t id, Outcome outcome);
    Summary run(Evaluator& evaluator, const Budget& budget, const std::stop_token& stop,
                Observer* observer);
    void prepare(const Evaluator& evaluator, Observer* observer);
    [[nodiscard]] const Problem& problem() const { return problem_; }
    [[nodiscard]] const TrialIndex& index() const { return index_; }
    [[nodiscard]] const std::vector<Trial>& trials() const { return trials_; }
    [[nodiscard]] std::optional<StopReason> spent(const Budget& budget, double seconds) const;
    [[nodiscard]] std::size_t in_hand() const;
    [[nodiscard]] Recommendation recommendation() const {
        return recommend(problem_, search_history(problem_, trials_));
    }

private:
    /// The part of `spent` that looks at the clocks: whether there is time for `trials` more.
    [[nodiscard]] std::optional<StopReason> time_spent(const Budget& budget, double seconds,
                                                       double trials = 1) const;
    /// Trials that a budget has in all: those that there is time for, as long as the longest so far
    /// each, after so many.
    [[nodiscard]] std::size_t trials_in_all(const Budget& budget, double seconds,
                                            std::size_t done) const;
    /// Trials that the search leaves time for, so that there is some to stress: as two of these
    /// last, and at most 15 % of a budget.
    [[nodiscard]] double kept_for_stress(const Budget& budget) const {
        constexpr double trials = 4, share = 0.15;
        const auto of_stress = [](const Trial& trial) { return trial.purpose == Purpose::stress; };
        if (!options_.stress || index_.told_in_search() == 0 || any_of(trials_, of_stress))
            return 0;
        const double all = std::min(budget.wall_clock_seconds,
                                    budget.until - options_.now() + options_.steady() - made_);
        return std::max(0.0, std::min(trials, share * all / trial_seconds(budget)));
    }
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
        return !trials_[id].is_interference_check() &&
               problem_.space.feasible(trials_[id].configuration);
    }
    void resume_open_trials();
    void check_feasible(const Configuration& configuration,
                        const std::string& who) const;  ///< throws SpaceError
    void fail_crashing_trials(Observer* observer);
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
    /// What it measures with: why it ended before a trial was measured; nothing: it is.
    using Measure = std::function<std::optional<StopReason>(const std::function<Trial()>&)>;
    // What follows the search. Why it ended before all were measured; nothing: they are.
    /// What is to be recommended, from a cold start.
    std::optional<StopReason> start_cold(const Measure& measure);
    /// What looks best now that something fell, beyond the trials of the budget.
    std::optional<StopReason> confirm_next(const Budget& budget, double began,
                                           const Measure& measure);
    /// The default and what is to be recommended under stress.
    std::optional<StopReason> stress(const Measure& measure);
    /// Both on the report workloads.
    std::optional<StopReason> report(const Measure& measure);
    /// Measures a configuration on a workload, unless that is done.
    std::optional<StopReason> once(const Measure& measure, const Configuration& configuration,
                                   Purpose purpose, const std::string& why,
                                   const std::string& workload);

    Problem problem_;
    const Strategy& strategy_;
    Journal& journal_;
    StudyOptions options_;
    std::vector<Trial> trials_;
    TrialIndex index_{};
    /// open trials that nobody has in hand: `next` gives them out before it asks the strategy
    std::set<std::uint64_t> unoffered_{};
    std::map<std::uint64_t, double>
        began_{};      ///< trials under way in this process: the steady clock at their start
    double made_ = 0;  ///< by the steady clock
    std::size_t first_here_ = 0;  ///< number of the first trial that is asked here
    bool confirming_ = false;     ///< whether a trial to confirm was asked here
};

Study::Loop::Loop(const Problem& problem, const Strategy& strategy, Journal& journal,
                  StudyOptions options)
    : problem_(problem),
      strategy_(strategy),
      journal_(journal),
      options_(std::move(options)),
      trials_(journal.trials()) {
    problem_.seed = options_.seed;
    if (!options_.steady) options_.steady = options_.now ? options_.now : steady_seconds;
    if (!options_.now) options_.now = unix_seconds;
    for (const Trial& trial : trials_) index_.add(trial);
    resume_open_trials();
    made_ = options_.steady();
    first_here_ = trials_.size();
}

const Trial& Study::Loop::add(Configuration configuration, Purpose purpose, std::string why,
                              std::string workload) {
    const std::uint64_t replicate = index_.times(workload, configuration);
    Trial trial{trials_.size(), std::move(configuration), std::move(workload),
                derive_seed(options_.seed, replicate), std::move(why)};
    trial.purpose = purpose;
    trial.asked_at = options_.now();
    journal_.asked(trial);
    trials_.push_back(std::move(trial));
    index_.add(trials_.back());
    return trials_.back();
}

std::optional<StopReason> Study::Loop::time_spent(const Budget& budget, double seconds,
                                                  double trials) const {
    const double ahead = trials * trial_seconds(budget);
    if (seconds >= budget.wall_clock_seconds || seconds + ahead > budget.wall_clock_seconds)
        return StopReason::wall_clock_spent;
    if (options_.now() + ahead > budget.until) return StopReason::deadline;
    return std::nullopt;
}

std::size_t Study::Loop::trials_in_all(const Budget& budget, double seconds,
                                       std::size_t done) const {
    const double left =
        std::min(budget.wall_clock_seconds - seconds, budget.until - options_.now());
    const double each = trial_seconds(budget);
    const double all =
        each > 0 ? double(done) + std::max(0.0, std::floor(left / each - kept_for_stress(budget)))
                 : std::numeric_limits<double>::infinity();
    return all < double(budget.trials) ? std::size_t(all) : budget.trials;
}

std::optional<StopReason> Study::Loop::spent(const Budget& budget, double seconds) const {
    if (index_.told_in_search() >= budget.trials) return StopReason::trials_spent;
    if (const auto reason = time_spent(budget, seconds, 1 + kept_for_stress(budget))) return reason;
    if (problem_.is_confirmed()) return std::nullopt;
    const auto reason = time_spent(budget, seconds, 2);
    return reason && recommendation().to_confirm
               ? reason
               : std::nullopt;  // the time of the cold start is kept
}

std::size_t Study::Loop::in_hand() const {
    const auto in_hand = [&](std::uint64_t id) { return !unoffered_.contains(id) && in_space(id); };
    return count_if(index_.open(), in_hand);
}

void Study::Loop::check_feasible(const Configuration& configuration, const std::string& who) const {
    const std::vector<std::string> violations = problem_.space.violations(configuration);
    if (!violations.empty())
        throw SpaceError(who + configuration.text() + ": " + violations.front());
}

Trial Study::Loop::propose(Configuration configuration, std::string why, Purpose purpose) {
    check_feasible(configuration, "");
    if (trials_.empty() && configuration != problem_.space.default_configuration())
        unoffered_.insert(add(problem_.space.default_configuration(), Purpose::search,
                              "the default configuration")
                              .id);
    return add(std::move(configuration), purpose, std::move(why));
}

AskResult Study::Loop::ask() {
    fail_crashing_trials(nullptr);
    return handed_out(next({.trials = std::numeric_limits<std::size_t>::max()}, made_));
}

AskResult Study::Loop::ask(const Budget& budget) {
    check_options("the budget", budget.why_invalid());
    problem_.trials = budget.known_trials();
    fail_crashing_trials(nullptr);
    if (auto finished = ended(budget, made_, first_here_)) return AskResult(std::move(*finished));
    if (index_.told_in_search() + in_hand() >= budget.trials)
        return AskResult(AskResult::Waiting{});
    return handed_out(next(budget, made_));
}

void Study::Loop::tell(std::uint64_t id, Outcome outcome) {
    outcome = failed_if_unfit(std::move(outcome));
    if (id < trials_.size())
        if (const std::string missing = missing_metric(problem_, trials_, trials_[id], outcome);
            !missing.empty())
            throw UsageError(missing);
    if (unoffered_.contains(id) && trials_[id].started_at)
        start(id);  // told without a new ask: its length is not known
    const auto began = began_.find(id);
    const double at = began == began_.end()
                          ? options_.now()
                          : present(trials_[id].started_at) + (options_.steady() - began->second);
    const SharedOutcome told(std::move(outcome));
    journal_.told(id, told, at);
    began_.erase(id);
    unoffered_.erase(id);
    trials_[id].outcome = told;
    trials_[id].told_at = at;
    index_.told(trials_[id]);
}

bool Study::Loop::search_goes_on(const Budget& budget, double seconds,
                                 std::span<const Trial> history) const {
    if (!problem_.is_confirmed()) return true;
    const auto searched = count_if(history, [](const Trial& t) { return !confirms(t); });
    const std::size_t all = trials_in_all(budget, seconds, history.size());
    if (all < budget.trials && confirming_) return false;
    return searched < search_trials(problem_, all) ||
           searched <
               search_trials(problem_, all, rounds_needed(problem_, problem_.standings(history)));
}

AskResult Study::Loop::next(const Budget& budget, double began) {
    if (!unoffered_.empty())
        return AskResult(trials_[unoffered_.extract(unoffered_.begin()).value()]);
    const std::vector<Trial> history = search_history(problem_, trials_);
    if (history.empty())
        return AskResult(add(problem_.space.default_configuration(), Purpose::search,
                             "the default configuration"));
    const double seconds = options_.steady() - began;
    if (!search_goes_on(budget, seconds, history)) {
        AskResult confirming =
            next_to_confirm(budget, seconds, history,
                            {StopReason::trials_spent, "the budget of the search is spent"});
        const bool nothing_to_confirm =
            confirming.finished() != nullptr && none_of(history, confirms);
        if (!nothing_to_confirm) return confirming;  // else what was kept for it is searched with
    }
    if (default_again_is_due(problem_, history, options_.default_again_every))
        return AskResult(add(problem_.space.default_configuration(), Purpose::drift_check,
                             "the default again: does the machine drift?"));
    Rng rng(derive_seed(options_.seed, history.size()));
    Answer answer = strategy_.ask(problem_, history, rng);
    if (auto* proposal = std::get_if<Proposal>(&answer)) {
        check_feasible(proposal->configuration, "strategy '" + strategy_.name() + "' proposed ");
        return AskResult(
            add(std::move(proposal->configuration), proposal->purpose, std::move(proposal->why)));
    }
    if (auto* finished = std::get_if<Finished>(&answer))
        return next_to_confirm(budget, seconds, history,
                               {StopReason::strategy_finished, std::move(finished->why)});
    return AskResult(AskResult::Waiting{});
}

AskResult Study::Loop::next_to_confirm(const Budget& budget, double seconds,
                                       std::span<const Trial> history,
                                       const AskResult::Finished& searched) {
    if (!problem_.is_confirmed()) return AskResult(searched);
    const std::size_t most = trials_in_all(budget, seconds, history.size());
    Answer answer = Confirmation(problem_, history, most).next();
    if (auto* proposal = std::get_if<Proposal>(&answer)) {
        confirming_ = true;
        return AskResult(
            add(std::move(proposal->configuration), Purpose::confirm, std::move(proposal->why)));
    }
    if (const auto* finished = std::get_if<Finished>(&answer))
        return AskResult(AskResult::Finished{searched.reason, searched.why + "; " + finished->why});
    return AskResult(AskResult::Waiting{});
}

std::string Study::Loop::why_spent(const Budget& budget, StopReason reason) const {
    if (reason == StopReason::trials_spent || index_.told_in_search() > 0 ||
        trial_seconds(budget) <= 0)
        return "the budget is spent";
    return "there is no time for a single trial, which is expected to take " +
           seconds_text(trial_seconds(budget));
}

std::optional<AskResult::Finished> Study::Loop::ended(const Budget& budget, double began,
                                                      std::size_t since) const {
    if (const auto reason = spent(budget, options_.steady() - began))
        return AskResult::Finished{*reason, why_spent(budget, *reason)};
    if (const Failure* failure = common_failure(trials_, since, budget.same_failures))
        return AskResult::Finished{StopReason::nothing_starts,
                                   "the first trials all failed the same way, " +
                                       std::string(name_in(failure_kinds, failure->kind)) + ": " +
                                       failure->message};
    return std::nullopt;
}

void Study::Loop::start(std::uint64_t id) {
    const double at = options_.now();
    const bool again = began_.contains(id);
    if (again) journal_.interrupted(id, at);
    journal_.started(id, at);
    if (!again) ++trials_[id].unended_starts;
    trials_[id].started_at = at;
    began_[id] = options_.steady();
}

void Study::Loop::resume_open_trials() {
    for (const std::uint64_t id : index_.open()) {
        if (in_space(id)) unoffered_.insert(id);
        if (options_.measured_elsewhere) trials_[id].unended_starts = 0;
    }
}

AskResult Study::Loop::handed_out(AskResult asked) {
    if (asked && asked->started_at) {
        start(asked->id);
        return AskResult(trials_[asked->id]);
    }
    return asked;
}

void Study::Loop::fail_crashing_trials(Observer* observer) {
    constexpr std::size_t deaths = 2;  // one may be the machine's
    for (const std::uint64_t id : std::set<std::uint64_t>(unoffered_)) {
        if (trials_[id].unended_starts < deaths || began_.contains(id)) continue;
        tell(id, Failure{FailureKind::other,
                         "the process ended during this trial, twice, before it had a result: the "
                         "trial is not started a third time"});
        if (observer != nullptr) observer->told(trials_[id], trials_);
    }
}

Study::Loop::~Loop() {
    for (const auto& [id, at] : began_) try {
            journal_.interrupted(id, options_.now());
        } catch (
            // NOLINT(bugprone-empty-catch): a journal that keeps nothing more has said so before
            ...) {
        }
}

bool Study::Loop::evaluate(const Trial& trial, Evaluator& evaluator, const std::stop_token& stop,
                           Observer* observer) {
    const std::uint64_t id = trial.id;
    start(id);
    if (observer != nullptr) observer->started(trials_[id]);
    Outcome outcome = evaluator.evaluate(trials_[id].configuration,
                                         context_of(problem_, trials_, trials_[id], stop));
    const auto* failure = std::get_if<Failure>(&outcome);
    if (stop.stop_requested() && failure != nullptr && failure->kind == FailureKind::cancelled)
        return false;
    tell(id, std::move(outcome));
    if (observer != nullptr) observer->told(trials_[id], trials_);
    return true;
}

void Study::Loop::prepare(const Evaluator& evaluator, Observer* observer) {
    problem_.replicates_inform = problem_.replicates_inform && evaluator.replicates_inform();
    resume_open_trials();  // also those that were asked by hand before
    fail_crashing_trials(observer);
}

AskResult::Finished Study::Loop::search(Evaluator& evaluator, const Budget& budget, double began,
                                        const std::stop_token& stop, Observer* observer) {
    const std::size_t first_of_run = trials_.size();
    for (;;) {
        if (stop.stop_requested()) return {StopReason::stopped_by_user};
        if (auto finished = ended(budget, began, first_of_run)) return *finished;
        const AskResult asked = next(budget, began);
        if (asked.finished() != nullptr) return *asked.finished();
        if (asked.waiting())
            return {StopReason::strategy_finished,
                    "the strategy waits, though no trial is under way"};
        if (!evaluate(*asked, evaluator, stop, observer)) return {StopReason::stopped_by_user};
    }
}

std::optional<StopReason> Study::Loop::once(const Measure& measure,
                                            const Configuration& configuration, Purpose purpose,
                                            const std::string& why, const std::string& workload) {
    const auto found = find_if(trials_, [&](const Trial& trial) {
        return trial.workload == workload && trial.configuration == configuration;
    });
    if (found != trials_.end() && found->told()) return std::nullopt;
    return measure([&] {
        return found != trials_.end() ? *found : add(configuration, purpose, why, workload);
    });
}

std::optional<StopReason> Study::Loop::start_cold(const Measure& measure) {
    constexpr int most_confirmed =
        5;  // each costs a trial beyond the budget; a cache that flatters more than these is no use
    Recommendation result = recommendation();
    for (int i = 0; result.to_confirm && i < most_confirmed; ++i, result = recommendation())
        if (const auto reason = measure([&] {
                return add(*result.to_confirm, Purpose::cold_start, "confirmed from a cold start");
            }))
            return reason;
    return std::nullopt;
}

std::optional<StopReason> Study::Loop::confirm_next(const Budget& budget, double began,
                                                    const Measure& measure) {
    constexpr std::size_t in_a_round = 3;
    const auto history = [&] { return search_history(problem_, trials_); };
    std::size_t until_last_fall = 0;
    const std::vector<Trial> before = history();
    for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i].fell()) until_last_fall = i + 1;
    if (until_last_fall == 0) return std::nullopt;
    Budget more = budget;
    more.trials = until_last_fall + in_a_round * least_rounds;
    for (;;) {
        const double seconds = options_.steady() - began;
        if (const auto reason = time_spent(budget, seconds)) return reason;
        const bool open = !unoffered_.empty();  // an earlier process asked it
        const AskResult asked =
            open ? AskResult(trials_[unoffered_.extract(unoffered_.begin()).value()])
                 : next_to_confirm(more, seconds, history(), {});
        if (!asked) return std::nullopt;
        if (const auto reason = measure([&] { return *asked; })) return reason;
    }
}

std::optional<StopReason> Study::Loop::stress(const Measure& measure) {
    const Recommendation result = recommendation();
    if (!options_.stress || !result.best) return std::nullopt;
    for (const Configuration& one : {result.default_configuration, result.recommended}) {
        if (one == result.default_configuration && !result.default_passes) continue;
        if (const auto reason = once(measure, one, Purpose::stress, "does it survive stress?",
                                     std::string(stress_workload)))
            return reason;
    }
    return std::nullopt;
}

std::optional<StopReason> Study::Loop::report(const Measure& measure) {
    const Recommendation result = recommendation();
    if (!result.best) return std::nullopt;
    for (const std::string& workload : options_.report_workloads)
        for (const Configuration& one : {result.default_configuration, result.recommended})
            if (const auto reason =
                    once(measure, one, Purpose::report, "report: " + workload, workload))
                return reason;
    return std::nullopt;
}

Summary Study::Loop::run(Evaluator& evaluator, const Budget& budget, const std::stop_token& stop,
                         Observer* observer) {
    Summary summary;
    try {
        check_options("the budget", budget.why_invalid());
        const double began = options_.steady();
        problem_.trials = budget.known_trials();
        if (observer != nullptr && !trials_.empty()) observer->resumed(trials_);
        prepare(evaluator, observer);
        const Measure measure = [&](const auto& trial) -> std::optional<StopReason> {
            if (stop.stop_requested()) return StopReason::stopped_by_user;
            if (const auto reason = time_spent(budget, options_.steady() - began)) return reason;
            return evaluate(trial(), evaluator, stop, observer)
                       ? std::nullopt
                       : std::optional(StopReason::stopped_by_user);
        };
        constexpr int most_falls = 3;
        std::optional<StopReason> ended;
        AskResult::Finished finished = search(evaluator, budget, began, stop, observer);
        summary.reason = finished.reason;
        summary.message = std::move(finished.why);
        if (summary.reason == StopReason::stopped_by_user) ended = summary.reason;
        for (int falls = 0; falls < most_falls && !ended; ++falls) {
            ended = confirm_next(budget, began, measure);
            if (!ended) ended = start_cold(measure);
            const Configuration winner = recommendation().recommended;
            if (!ended) ended = stress(measure);
            if (recommendation().recommended == winner) break;  // else it fell, and the next one is
        }
        if (!ended) ended = report(measure);
        summary.reason = ended.value_or(summary.reason);
    } catch (const std::exception& error) {
        summary.reason = StopReason::error;
        summary.message = plain_words(error);
    }
    try {
        summary.recommendation =
            recommendation();  // also after an error: of the trials recorded until then
    } catch (const std::exception& error) {
        if (summary.reason != StopReason::error)
            summary.message = plain_words(error);  // else the first error is the cause
        summary.reason = StopReason::error;
    }
    return summary;
}

Study::Study(const Problem& problem, const Strategy& strategy, Journal& journal, Options options)
    : loop_(std::make_unique<Loop>(problem, strategy, journal, std::move(options))) {}
Study::~Study() = default;

AskResult Study::ask() { return loop_->ask(); }
AskResult Study::ask(const Budget& budget) { return loop_->ask(budget); }
Trial Study::propose(Configuration configuration, std::string why, Purpose purpose) {
    return loop_->propose(std::move(configuration), std::move(why), purpose);
}
void Study::start(std::uint64_t id) { loop_->start(id); }
void Study::tell(std::uint64_t id, Outcome outcome) { loop_->tell(id, std::move(outcome)); }
Summary Study::run(Evaluator& evaluator, const Budget& budget, const std::stop_token& stop,
                   Observer* observer) {
    return loop_->run(evaluator, budget, stop, observer);
}
void Study::prepare(const Evaluator& evaluator, Observer* observer) {
    loop_->prepare(evaluator, observer);
}
const Problem& Study::problem() const { return loop_->problem(); }
std::optional<StopReason> Study::spent(const Budget& budget, double seconds) const {
    return loop_->spent(budget, seconds);
}
std::size_t Study::in_hand() const { return loop_->in_hand(); }
std::size_t Study::told_in_search() const { return loop_->index().told_in_search(); }
std::optional<std::uint64_t> Study::open_trial(const Configuration& configuration) const {
    return loop_->index().open_trial(configuration);
}
const std::vector<Trial>& Study::trials() const { return loop_->trials(); }
Recommendation Study::recommendation() const { return loop_->recommendation(); }

}  // namespace servetune
