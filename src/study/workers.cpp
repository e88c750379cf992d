// SPDX-License-Identifier: Apache-2.0
#include "servetune/workers.hpp"

#include "base/text.hpp"
#include "clocks.hpp"
#include "confirmation.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "trial_rules.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace servetune {

/// One thread for each evaluator. The caller's thread sends trials and fetches what became of them.
class WorkerPool {
public:
    struct Done {
        std::size_t worker = 0;
        std::uint64_t trial = 0;
        Outcome outcome{};
        std::exception_ptr error{};  ///< the evaluator threw: the tuner cannot go on
    };

    /// `evaluators`: must outlive this; each is called from one thread only.
    explicit WorkerPool(std::span<Evaluator* const> evaluators);
    /// Waits for what is under way.
    ~WorkerPool() {
        for (std::jthread& thread : threads_) thread.request_stop();
    }
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    /// The first one without a trial; nothing: all have one.
    [[nodiscard]] std::optional<std::size_t> idle() const {
        for (std::size_t i = 0; i < busy_.size(); ++i)
            if (!busy_[i] && !retired_[i]) return i;
        return std::nullopt;
    }
    [[nodiscard]] bool all_idle() const { return !contains(busy_, true); }
    [[nodiscard]] std::size_t size() const {
        return std::size_t(std::count(retired_.begin(), retired_.end(), false));
    }
    /// The first that takes trials.
    [[nodiscard]] std::size_t first() const {
        const auto at = std::find(retired_.begin(), retired_.end(), false);
        return at == retired_.end() ? 0 : std::size_t(at - retired_.begin());
    }
    /// Takes no further trial.
    void retire(std::size_t worker) { retired_[worker] = true; }
    void send(std::size_t worker, Configuration configuration, EvaluationContext context) {
        busy_[worker] = true;
        const std::lock_guard lock(mutex_);
        jobs_[worker].emplace(std::move(configuration), std::move(context));
        there_is_work_.notify_all();
    }
    /// Waits for the next that is done.
    Done next() {
        std::unique_lock lock(mutex_);
        something_is_done_.wait(lock, [&] { return !done_.empty(); });
        Done result = std::move(done_.front());
        done_.pop_front();
        busy_[result.worker] = false;
        return result;
    }

private:
    void work(std::size_t worker, Evaluator& evaluator, const std::stop_token& over);

    std::vector<bool> busy_, retired_;  // the caller's
    std::mutex mutex_;
    std::condition_variable_any there_is_work_;
    std::condition_variable something_is_done_;
    std::deque<std::optional<std::pair<Configuration, EvaluationContext>>> jobs_;
    std::deque<Done> done_{};
    std::vector<std::jthread> threads_;  // last: ends before what it uses
};

WorkerPool::WorkerPool(std::span<Evaluator* const> evaluators)
    : busy_(evaluators.size(), false), retired_(evaluators.size(), false) {
    for (std::size_t i = 0; i < evaluators.size(); ++i) jobs_.emplace_back();
    for (std::size_t i = 0; i < evaluators.size(); ++i)
        threads_.emplace_back([this, i, evaluator = evaluators[i]](const std::stop_token& over) {
            work(i, *evaluator, over);
        });
}

void WorkerPool::work(std::size_t worker, Evaluator& evaluator, const std::stop_token& over) {
    for (;;) {
        std::unique_lock lock(mutex_);
        if (!there_is_work_.wait(lock, over, [&] { return jobs_[worker].has_value(); })) return;
        auto [configuration, context] = std::move(*jobs_[worker]);
        jobs_[worker].reset();
        lock.unlock();
        Done done{worker, context.trial};
        try {
            done.outcome = evaluator.evaluate(configuration, context);
        } catch (...) {
            done.error = std::current_exception();
        }
        lock.lock();
        done_.push_back(std::move(done));
        something_is_done_.notify_all();
    }
}

class WorkersRun::Loop {
public:
    explicit Loop(WorkersRun& of)
        : study_(of.study_),
          problem_(study_.problem()),
          evaluators_(of.evaluators_),
          budget_(of.budget_),
          observer_(of.observer_),
          say_(of.say_) {}

    Summary run(const std::stop_token& stop);

private:
    /// Passes on all but that a study goes on: that was said.
    class Quiet : public Observer {
    public:
        explicit Quiet(Observer* next) : next_(next) {}
        void started(const Trial& trial) override {
            if (next_ != nullptr) next_->started(trial);
        }
        void told(const Trial& trial, std::span<const Trial> history) override {
            if (next_ != nullptr) next_->told(trial, history);
        }

    private:
        Observer* next_;
    };

    void say(const std::string& line) const {
        if (say_) say_(line);
    }

    /// Whatever goes wrong, what is under way is ended and told before it is said.
    AskResult::Finished searched(WorkerPool& pool) {
        try {
            if (evaluators_.size() < 2 || !may_share(pool))
                return {StopReason::strategy_finished};  // one at a time
            return search(pool);
        } catch (...) {
            stop_.request_stop();
            while (!pool.all_idle()) {
                WorkerPool::Done done = pool.next();
                try {
                    if (!done.error) tell(done.trial, std::move(done.outcome));
                } catch (...) {  // NOLINT(bugprone-empty-catch): the first error is the cause
                }
            }
            throw;
        }
    }

    void send(WorkerPool& pool, std::size_t worker, const Trial& trial) {
        if (!trial.started_at) study_.start(trial.id);
        if (observer_ != nullptr) observer_->started(study_.trials()[trial.id]);
        pool.send(worker, trial.configuration,
                  context_of(problem_, study_.trials(), trial, stop_.get_token()));
    }

    void tell(std::uint64_t trial, Outcome outcome) {
        const auto* failure = std::get_if<Failure>(&outcome);
        if (stop_.stop_requested() && failure != nullptr && failure->kind == FailureKind::cancelled)
            return;  // it stays open
        study_.tell(trial, std::move(outcome));
        if (observer_ != nullptr) observer_->told(study_.trials()[trial], study_.trials());
    }

    WorkerPool::Done next_of(WorkerPool& pool) {
        WorkerPool::Done done = pool.next();
        if (done.error) std::rethrow_exception(done.error);
        return done;
    }

    /// Of the leading goal; nothing of what cannot be believed.
    [[nodiscard]] std::optional<double> figure(const Outcome& outcome) const;

    /// Whether several trials at once may be trusted; retires workers.
    bool may_share(WorkerPool& pool);

    /// The trials of the last check that came to its end, by worker; empty: there is none.
    [[nodiscard]] std::vector<const Trial*> earlier_check() const;

    std::optional<double> default_alone(WorkerPool& pool);

    [[nodiscard]] static std::string percent(double log) {
        return short_number_text(std::round(1000 * std::expm1(log)) / 10 + 0.0) + " %";
    }

    bool judge(WorkerPool& pool, double alone, std::vector<WorkerPool::Done>& together);

    /// Workers that differ from the median of the others by more than noise, the farthest first. Of
    /// two workers that differ, the second.
    static std::map<std::size_t, std::string> odd_workers(
        const std::vector<std::optional<double>>& figures, double cv, double least);

    AskResult::Finished search(WorkerPool& pool);

    Study& study_;
    const Problem& problem_;
    std::span<Evaluator* const> evaluators_;
    const Budget& budget_;
    Observer* observer_;
    const Say& say_;
    double began_ = 0;  ///< by the steady clock
    std::stop_source stop_{};
};

Summary WorkersRun::Loop::run(const std::stop_token& stop) {
    began_ = steady_seconds();
    const std::stop_callback pass_on(stop, [this] { stop_.request_stop(); });
    Summary summary;
    std::size_t first = 0;
    try {
        check_options("the budget", budget_.why_invalid());
        if (observer_ != nullptr && !study_.trials().empty()) observer_->resumed(study_.trials());
        study_.prepare(*evaluators_.front(), observer_);
        WorkerPool pool(evaluators_);
        const AskResult::Finished finished = searched(pool);
        first = pool.first();
        summary.reason = finished.reason;
        summary.message = finished.why;
    } catch (const std::exception& error) {
        summary.message = plain_words(error);
        summary.reason = StopReason::error;
    }
    if (summary.reason == StopReason::error || summary.reason == StopReason::nothing_starts) {
        try {
            summary.recommendation = study_.recommendation();
        } catch (
            const std::exception&) {  // NOLINT(bugprone-empty-catch): the first error is the cause
        }
        return summary;
    }
    // What is left: the rest one by one, or the report's workloads only.
    Budget rest = budget_;
    rest.wall_clock_seconds =
        std::max(0.0, budget_.wall_clock_seconds - (steady_seconds() - began_));
    Quiet quiet(observer_);
    return study_.run(*evaluators_[first], rest, stop, &quiet);
}

std::optional<double> WorkersRun::Loop::figure(const Outcome& outcome) const {
    const auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr || !problem_.decision.believes(*measurement)) return std::nullopt;
    const auto found = measurement->metrics.find(problem_.objective.leading().metric);
    if (found == measurement->metrics.end() || !std::isfinite(found->second.value))
        return std::nullopt;
    return found->second.value;
}

bool WorkersRun::Loop::may_share(WorkerPool& pool) {
    if (!problem_.replicates_inform) return true;
    if (const std::vector<const Trial*> found = earlier_check();
        found.size() == evaluators_.size()) {
        for (std::size_t worker = 0; worker < found.size(); ++worker)
            if (found[worker]->measurement() == nullptr) pool.retire(worker);
        return pool.size() > 1;
    }
    for (const Trial& trial : study_.trials())  // of a check that did not come to its end
        if (trial.purpose == Purpose::worker_check && !trial.told())
            study_.tell(trial.id, Failure{FailureKind::cancelled,
                                          "the check of the workers was interrupted, so this "
                                          "figure does not count"});
    const std::size_t needed =
        study_.told_in_search() + evaluators_.size() + (study_.trials().empty() ? 1 : 0);
    if (study_.spent(budget_, steady_seconds() - began_) || needed > budget_.trials) {
        say("too few trials are left to check whether workers disturb each other: one trial at "
            "a time");
        return false;
    }
    const std::optional<double> alone = default_alone(pool);
    if (stop_.stop_requested()) return true;
    if (!alone) {
        say("whether workers disturb each other is checked with the default, which gave no "
            "sound figure: one trial at a time");
        return false;
    }
    for (std::size_t worker = 0; worker < evaluators_.size(); ++worker)
        send(pool, worker,
             study_.propose(problem_.space.default_configuration(),
                            "the default on all workers at once: do they disturb each other?",
                            Purpose::worker_check));
    std::vector<WorkerPool::Done> together(evaluators_.size());
    while (!pool.all_idle()) {
        WorkerPool::Done done = next_of(pool);
        const std::size_t worker = done.worker;
        together[worker] = std::move(done);
    }
    if (stop_.stop_requested()) return true;  // all stay open
    return judge(pool, *alone, together);
}

std::vector<const Trial*> WorkersRun::Loop::earlier_check() const {
    std::vector<const Trial*> result;
    for (const Trial& trial : study_.trials()) {
        const bool counts =
            trial.purpose == Purpose::worker_check && trial.told() &&
            (trial.failure() == nullptr || trial.failure()->kind != FailureKind::cancelled);
        if (!counts) continue;
        if (!result.empty() && result.back()->id + 1 != trial.id) result.clear();
        result.push_back(&trial);
    }
    return result;
}

std::optional<double> WorkersRun::Loop::default_alone(WorkerPool& pool) {
    if (study_.trials().empty() || !study_.trials().front().told()) {
        const AskResult asked = study_.ask(budget_);
        if (!asked) return std::nullopt;
        send(pool, 0, *asked);
        WorkerPool::Done done = next_of(pool);
        tell(done.trial, std::move(done.outcome));
    }
    const Trial& first = study_.trials().front();
    if (first.measurement() == nullptr ||
        first.configuration != problem_.space.default_configuration())
        return std::nullopt;
    return figure(Outcome(*first.measurement()));
}

bool WorkersRun::Loop::judge(WorkerPool& pool, double alone,
                             std::vector<WorkerPool::Done>& together) {
    std::vector<std::optional<double>> figures;
    double lowest = alone;
    for (const WorkerPool::Done& done : together) {
        figures.push_back(figure(done.outcome));
        lowest = std::min(lowest, figures.back().value_or(alone));
    }
    const FigureScale scale = lowest > 0 ? FigureScale{} : FigureScale::of_differences(alone, {});
    const int sign = problem_.objective.leading().direction == Direction::maximize ? 1 : -1;
    alone = sign * std::log(scale.judged(alone));  // more is better
    for (auto& one : figures)
        if (one) one = sign * std::log(scale.judged(*one));
    const double cv = problem_.decision.noise_cv;
    const double least = std::log1p(problem_.decision.min_gain);
    const double limit = std::max(2.5 * cv * std::sqrt(2.0), least);
    const bool all = all_of(figures, [](const auto& one) { return one.has_value(); });
    const double change = figures.front() ? *figures.front() - alone : 0;
    const bool quiet = all && std::abs(change) <= limit;
    std::map<std::size_t, std::string> refused;
    if (quiet) refused = odd_workers(figures, cv, least);
    if (!all)
        say("the default gave a figure alone, and on all workers at once some gave none: one "
            "trial at a time from here");
    else
        say("the figure of worker 1 changes by " + percent(change) + " when the others run too" +
            (quiet ? ", within noise (" + percent(limit) + "); " +
                         std::to_string(figures.size() - refused.size()) + " trials at once"
                   : ", beyond noise (" + percent(limit) + "); one trial at a time from here"));
    for (const auto& [worker, why] : refused) {
        say("worker " + std::to_string(worker + 1) + " " + why);
        pool.retire(worker);
    }
    for (WorkerPool::Done& done : together) {
        if (!quiet)
            done.outcome = Failure{
                FailureKind::infrastructure,
                "measured on all workers at once, which disturb each other: it does not count"};
        else if (const auto odd = refused.find(done.worker); odd != refused.end())
            done.outcome = Failure{FailureKind::infrastructure,
                                   "worker " + std::to_string(done.worker + 1) + " " + odd->second};
        tell(done.trial, std::move(done.outcome));
    }
    return quiet && pool.size() > 1;
}

std::map<std::size_t, std::string> WorkersRun::Loop::odd_workers(
    const std::vector<std::optional<double>>& figures, double cv, double least) {
    std::map<std::size_t, std::string> result;
    for (;;) {
        std::optional<std::size_t> farthest;
        double distance = 0;
        for (std::size_t i = 0; i < figures.size(); ++i) {
            std::vector<double> others;
            for (std::size_t j = 0; j < figures.size(); ++j)
                if (j != i && !result.contains(j)) others.push_back(*figures[j]);
            if (result.contains(i) || others.empty()) continue;
            sort(others);
            const double median = (others[(others.size() - 1) / 2] + others[others.size() / 2]) / 2;
            const double mine = *figures[i] - median;
            const double noise = 3 * cv * std::sqrt(1 + 1 / double(others.size()));
            if (std::abs(mine) <= std::max(noise, least) || std::abs(mine) < std::abs(distance))
                continue;
            farthest = i;
            distance = mine;
        }
        if (!farthest) return result;
        result[*farthest] =
            "differs from the others by " + percent(distance) + ": it gets no further trial";
    }
}

AskResult::Finished WorkersRun::Loop::search(WorkerPool& pool) {
    std::optional<AskResult::Finished> finished;
    for (;;) {
        while (!finished && !stop_.stop_requested()) {
            const auto worker = pool.idle();
            if (!worker) break;
            const AskResult asked = study_.ask(budget_);
            if (asked.finished() != nullptr) finished = *asked.finished();
            if (!asked) break;
            // Rounds are compared on one worker, one trial after the other.
            if (confirms(*asked)) {
                finished = AskResult::Finished{StopReason::strategy_finished, "the search is over"};
                break;
            }
            send(pool, *worker, *asked);
            if (asked->unended_starts > 1)
                break;  // a process died of it or beside it: now it is alone
        }
        if (pool.all_idle()) {
            if (stop_.stop_requested()) return {StopReason::stopped_by_user};
            return finished.value_or(AskResult::Finished{
                StopReason::strategy_finished, "the strategy waits, though no trial is under way"});
        }
        WorkerPool::Done done = next_of(pool);
        tell(done.trial, std::move(done.outcome));
    }
}

Summary WorkersRun::run(const std::stop_token& stop) { return Loop(*this).run(stop); }

}  // namespace servetune
