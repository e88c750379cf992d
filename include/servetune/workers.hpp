// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/study/clocks.hpp"
#include "servetune/detail/study/to_beat.hpp"
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
    Summary run(const std::stop_token& stop = {});

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
    Budget budget_;
    Observer* observer_;
    Say say_;
    double began_ = 0;  ///< by the steady clock
    std::stop_source stop_{};
};

}  // namespace servetune
