// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/study/worker_pool.hpp"
#include "servetune/study.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// `Study::run` with several trials at once: one evaluator for each part of the machine, such as a
/// GPU. All evaluators measure alike; trial ids, asks and the journal stay in the caller's thread,
/// and the strategy sees trials under way.
///
/// First it is checked that neighbours do not disturb each other: the default on the first worker
/// alone, then on all at once. Where the first worker then differs by more than noise (2.5 standard
/// errors, and at least `min_gain`), the figures of the check are told as failures of the machine
/// and the study goes on with one trial at a time. A worker that differs from the median of the
/// others (3 standard errors) gets no further trial. A study that goes on finds both in its
/// journal. An interrupted check is made again and spends no budget.
///
/// What looks best is confirmed by one worker: its rounds compare one part of the machine.
class WorkersRun {
public:
    using Say = std::function<void(const std::string&)>;

    /// All must outlive it. `evaluators`: at least one. `say`: gets lines for a person, or empty.
    WorkersRun(Study& study, std::span<Evaluator* const> evaluators, const Budget& budget,
               Observer* observer = nullptr, Say say = {})
        : study_(study),
          problem_(study.problem()),
          evaluators_(evaluators),
          budget_(budget),
          observer_(observer),
          say_(std::move(say)) {}

    /// As `Study::run`. The first worker that takes trials measures what is reported at the end.
    Summary run(const std::stop_token& stop = {}) {
        began_ = steady_seconds();
        const std::stop_callback pass_on(stop, [this] { stop_.request_stop(); });
        Summary summary;
        std::size_t first = 0;
        try {
            check_options("the budget", budget_.why_invalid());
            if (observer_ != nullptr && !study_.trials().empty())
                observer_->resumed(study_.trials());
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
                const std::
                    exception&) {  // NOLINT(bugprone-empty-catch): the first error is the cause
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

    static constexpr const char* interrupted_words =
        "the check of the workers was interrupted, so this figure does not count";

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

    /// ln of the leading goal, more is better; nothing of what cannot be believed.
    [[nodiscard]] std::optional<double> figure(const Outcome& outcome) const {
        const auto* measurement = std::get_if<Measurement>(&outcome);
        if (measurement == nullptr || !problem_.decision.believes(*measurement))
            return std::nullopt;
        const auto found = measurement->metrics.find(problem_.objective.leading().metric);
        if (found == measurement->metrics.end() || !(found->second.value > 0)) return std::nullopt;
        return (problem_.objective.leading().direction == Direction::maximize ? 1 : -1) *
               std::log(found->second.value);
    }

    /// Whether several trials at once may be trusted; retires workers.
    bool may_share(WorkerPool& pool) {
        if (!problem_.replicates_inform) return true;
        if (const std::vector<const Trial*> found = earlier_check();
            found.size() == evaluators_.size()) {
            for (std::size_t worker = 0; worker < found.size(); ++worker)
                if (found[worker]->measurement() == nullptr) pool.retire(worker);
            return pool.size() > 1;
        }
        for (const Trial& trial : study_.trials())  // of a check that did not come to its end
            if (trial.why == workers_check_words && !trial.told())
                study_.tell(trial.id, Failure{FailureKind::infrastructure, interrupted_words});
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
                "sound figure above 0: one trial at a time");
            return false;
        }
        for (std::size_t worker = 0; worker < evaluators_.size(); ++worker)
            send(pool, worker,
                 study_.propose(problem_.space.default_configuration(),
                                std::string(workers_check_words)));
        std::vector<WorkerPool::Done> together(evaluators_.size());
        while (!pool.all_idle()) {
            WorkerPool::Done done = next_of(pool);
            const std::size_t worker = done.worker;
            together[worker] = std::move(done);
        }
        if (stop_.stop_requested()) return true;  // all stay open
        return judge(pool, *alone, together);
    }

    /// The trials of the last check that came to its end, by worker; empty: there is none.
    [[nodiscard]] std::vector<const Trial*> earlier_check() const {
        std::vector<const Trial*> result;
        for (const Trial& trial : study_.trials()) {
            const bool counts =
                trial.why == workers_check_words && trial.told() &&
                (trial.failure() == nullptr || trial.failure()->message != interrupted_words);
            if (!counts) continue;
            if (!result.empty() && result.back()->id + 1 != trial.id) result.clear();
            result.push_back(&trial);
        }
        return result;
    }

    std::optional<double> default_alone(WorkerPool& pool) {
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

    [[nodiscard]] static std::string percent(double log) {
        return short_number_text(std::round(1000 * std::expm1(log)) / 10 + 0.0) + " %";
    }

    bool judge(WorkerPool& pool, double alone, std::vector<WorkerPool::Done>& together) {
        std::vector<std::optional<double>> figures;
        for (const WorkerPool::Done& done : together) figures.push_back(figure(done.outcome));
        const double cv = problem_.decision.noise_cv;
        const double least = std::log1p(problem_.decision.min_gain);
        const double limit = std::max(2.5 * cv * std::sqrt(2.0), least);
        const bool all = std::all_of(figures.begin(), figures.end(),
                                     [](const auto& one) { return one.has_value(); });
        const double change = figures.front() ? *figures.front() - alone : 0;
        const bool quiet = all && std::abs(change) <= limit;
        std::map<std::size_t, std::string> refused;
        if (quiet) refused = odd_workers(figures, cv, least);
        if (!all)
            say("the default gave a figure alone, and on all workers at once some gave none: one "
                "trial at a time from here");
        else
            say("the figure of worker 1 changes by " + percent(change) +
                " when the others run too" +
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
                done.outcome =
                    Failure{FailureKind::infrastructure,
                            "worker " + std::to_string(done.worker + 1) + " " + odd->second};
            tell(done.trial, std::move(done.outcome));
        }
        return quiet && pool.size() > 1;
    }

    /// Workers that differ from the median of the others by more than noise, the farthest first. Of
    /// two workers that differ, the second.
    static std::map<std::size_t, std::string> odd_workers(
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
                std::sort(others.begin(), others.end());
                const double median =
                    (others[(others.size() - 1) / 2] + others[others.size() / 2]) / 2;
                const double mine = *figures[i] - median;
                const double noise = 3 * cv * std::sqrt(1 + 1 / static_cast<double>(others.size()));
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

    AskResult::Finished search(WorkerPool& pool) {
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
                    finished =
                        AskResult::Finished{StopReason::strategy_finished, "the search is over"};
                    break;
                }
                send(pool, *worker, *asked);
                if (asked->unended_starts > 1)
                    break;  // a process died of it or beside it: now it is alone
            }
            if (pool.all_idle()) {
                if (stop_.stop_requested()) return {StopReason::stopped_by_user};
                return finished.value_or(
                    AskResult::Finished{StopReason::strategy_finished,
                                        "the strategy waits, though no trial is under way"});
            }
            WorkerPool::Done done = next_of(pool);
            tell(done.trial, std::move(done.outcome));
        }
    }

    Study& study_;
    const Problem& problem_;
    std::span<Evaluator* const> evaluators_;
    Budget budget_;
    Observer* observer_;
    Say say_;
    double began_ = 0;  ///< by the steady clock
    std::stop_source stop_{};
};

}  // namespace servetune
