// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/number_text.hpp"
#include "servetune/parallel/worker_pool.hpp"
#include "servetune/study/study.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// `Study::run` with several trials at once: one evaluator for each part of the machine, such as a GPU. All evaluators
/// measure alike; trial ids, asks and the journal stay in the caller's thread, and the strategy sees trials under way.
///
/// First it is checked that neighbours do not disturb each other: the default alone, then on all workers at once. Where
/// that differs by more than noise (2.5 standard errors, and at least `min_gain`), those figures are told as failures
/// of the machine and the study goes on with one trial at a time. A worker that differs from the others (3 standard
/// errors) gets no further trial. A study that goes on remembers what was found.
class WorkersRun {
public:
    using Say = std::function<void(const std::string&)>;

    /// All must outlive it. `evaluators`: at least one. `say`: gets lines for a person, in the caller's thread; may be
    /// empty.
    WorkersRun(Study& study, const Problem& problem, std::span<Evaluator* const> evaluators, const Budget& budget,
               Observer* observer = nullptr, Say say = {})
        : study_(study), problem_(problem), evaluators_(evaluators), budget_(budget), observer_(observer), say_(std::move(say)) {}

    /// As `Study::run`: never throws a std::exception. What is reported at the end is measured by the first evaluator.
    Summary run(const std::stop_token& stop = {}) {
        const double began = steady_seconds();
        const std::stop_callback pass_on(stop, [this] { stop_.request_stop(); });
        Summary summary;
        try {
            check_options("the budget", budget_.why_invalid());
            if (observer_ != nullptr && !study_.trials().empty()) observer_->resumed(study_.trials());
            WorkerPool pool(evaluators_);
            const bool several = evaluators_.size() > 1 && neighbours_are_quiet(pool);
            const AskResult::Finished finished = several ? search(pool) : AskResult::Finished{StopReason::strategy_finished};
            summary.reason = finished.reason;
            summary.message = finished.why;
        } catch (const std::exception& error) {
            summary.message = error.what();
            summary.reason = StopReason::error;
        }
        if (summary.reason == StopReason::error || summary.reason == StopReason::nothing_starts) {
            summary.recommendation = study_.recommendation();
            return summary;
        }
        // What is left: the rest one by one, or the report's workloads only.
        Budget rest = budget_;
        rest.wall_clock_seconds = std::max(0.0, budget_.wall_clock_seconds - (steady_seconds() - began));
        Quiet quiet(observer_);
        return study_.run(*evaluators_.front(), rest, stop, &quiet);
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

    static constexpr const char* beside_words = "the default on all workers at once: do they disturb each other?";

    void say(const std::string& line) const {
        if (say_) say_(line);
    }

    void send(WorkerPool& pool, std::size_t worker, const Trial& trial) {
        if (!trial.started_at) study_.start(trial.id);
        if (observer_ != nullptr) observer_->started(study_.trials()[trial.id]);
        pool.send(worker, trial.configuration,
                  {trial.id, trial.seed, trial.workload, stop_.get_token(), to_beat(problem_, study_.trials(), trial)});
    }

    /// False: it was stopped, and the trial stays open.
    bool tell(std::uint64_t trial, Outcome outcome) {
        const auto* failure = std::get_if<Failure>(&outcome);
        if (stop_.stop_requested() && failure != nullptr && failure->kind == FailureKind::cancelled) return false;
        study_.tell(trial, std::move(outcome));
        if (observer_ != nullptr) observer_->told(study_.trials()[trial], study_.trials());
        return true;
    }

    /// Waits for all; the first error ends the others and is thrown.
    std::vector<WorkerPool::Done> all_done(WorkerPool& pool) {
        std::vector<WorkerPool::Done> result;
        std::exception_ptr error;
        while (!pool.all_idle()) {
            result.push_back(pool.next());
            if (!result.back().error || error) continue;
            error = result.back().error;
            stop_.request_stop();
        }
        if (!error) return result;
        for (WorkerPool::Done& done : result)
            if (!done.error) tell(done.trial, std::move(done.outcome));
        std::rethrow_exception(error);
    }

    /// ln of the leading goal, more is better.
    [[nodiscard]] std::optional<double> figure(const Outcome& outcome) const {
        const auto* measurement = std::get_if<Measurement>(&outcome);
        if (measurement == nullptr || !problem_.decision.believes(*measurement)) return std::nullopt;
        const auto found = measurement->metrics.find(problem_.objective.leading().metric);
        if (found == measurement->metrics.end() || !(found->second.value > 0)) return std::nullopt;
        return (problem_.objective.leading().direction == Direction::maximize ? 1 : -1) * std::log(found->second.value);
    }

    /// Whether several trials at once may be trusted.
    bool neighbours_are_quiet(WorkerPool& pool) {
        if (!problem_.replicates_inform) return true;
        std::vector<const Trial*> before;
        for (const Trial& trial : study_.trials())
            if (trial.why == beside_words && trial.told()) before.push_back(&trial);
        if (!before.empty())
            return std::any_of(before.begin(), before.end(), [](const Trial* trial) { return trial->measurement() != nullptr; });
        const std::optional<double> alone = default_alone(pool);
        if (!alone || stop_.stop_requested()) return true;
        for (std::size_t worker = 0; worker < evaluators_.size(); ++worker)
            send(pool, worker, study_.propose(problem_.space.default_configuration(), beside_words));
        std::vector<WorkerPool::Done> together = all_done(pool);
        if (stop_.stop_requested()) {
            for (WorkerPool::Done& done : together) tell(done.trial, std::move(done.outcome));
            return true;
        }
        return judge(pool, *alone, together);
    }

    std::optional<double> default_alone(WorkerPool& pool) {
        if (study_.trials().empty()) {
            const AskResult asked = study_.ask(budget_);
            if (!asked) return std::nullopt;
            send(pool, 0, *asked);
            for (WorkerPool::Done& done : all_done(pool)) tell(done.trial, std::move(done.outcome));
        }
        const Trial& first = study_.trials().front();
        if (!first.told() || first.configuration != problem_.space.default_configuration()) return std::nullopt;
        return first.measurement() == nullptr ? std::nullopt : figure(Outcome(*first.measurement()));
    }

    bool judge(WorkerPool& pool, double alone, std::vector<WorkerPool::Done>& together) {
        std::vector<double> figures;
        for (const WorkerPool::Done& done : together)
            if (const auto value = figure(done.outcome)) figures.push_back(*value);
        const double cv = problem_.decision.noise_cv;
        const double least = std::log1p(problem_.decision.min_gain);
        const auto count = static_cast<double>(figures.size());
        const double mean = std::accumulate(figures.begin(), figures.end(), 0.0) / std::max(count, 1.0);
        const double limit = std::max(2.5 * cv * std::sqrt(1 + 1 / std::max(count, 1.0)), least);
        const bool quiet = figures.size() == together.size() && std::abs(mean - alone) <= limit;
        const auto percent = [](double log) { return short_number_text(std::round(1000 * std::expm1(log)) / 10) + " %"; };
        if (figures.empty()) say("the default failed on all workers at once, and did not alone: one trial at a time from here");
        else if (figures.size() < together.size())
            say("the default failed on some workers, and did not alone: one trial at a time from here");
        else
            say("the default on all " + std::to_string(figures.size()) + " workers at once against alone: " + percent(mean - alone) +
                (quiet ? ", within noise (" : ", beyond noise (") + percent(limit) + "); " +
                (quiet ? std::to_string(figures.size()) + " trials at once" : std::string("one trial at a time from here")));
        for (WorkerPool::Done& done : together) {
            const auto mine = figure(done.outcome);
            if (quiet && figures.size() > 2) {
                const double others = (mean * count - *mine) / (count - 1);
                if (std::abs(*mine - others) > std::max(3 * cv * std::sqrt(1 + 1 / (count - 1)), least)) {
                    say("worker " + std::to_string(done.worker + 1) + " differs from the others by " + percent(*mine - others) +
                        ": it gets no further trial");
                    pool.retire(done.worker);
                    done.outcome = Failure{FailureKind::infrastructure,
                                           "this worker differs from the others by " + percent(*mine - others) + ", so it is left out"};
                }
            }
            if (!quiet && mine)
                done.outcome =
                    Failure{FailureKind::infrastructure, "on all workers at once " + percent(*mine - alone) +
                                                             " against alone: they disturb each other, so this figure does not count"};
            tell(done.trial, std::move(done.outcome));
        }
        return quiet && pool.size() > 1;
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
                send(pool, *worker, *asked);
            }
            if (pool.all_idle()) {
                if (stop_.stop_requested()) return {StopReason::stopped_by_user};
                return finished.value_or(
                    AskResult::Finished{StopReason::strategy_finished, "the strategy waits, though no trial is under way"});
            }
            WorkerPool::Done done = pool.next();
            if (done.error) {
                stop_.request_stop();
                for (WorkerPool::Done& other : all_done(pool)) tell(other.trial, std::move(other.outcome));
                std::rethrow_exception(done.error);
            }
            tell(done.trial, std::move(done.outcome));
        }
    }

    Study& study_;
    const Problem& problem_;
    std::span<Evaluator* const> evaluators_;
    Budget budget_;
    Observer* observer_;
    Say say_;
    std::stop_source stop_{};
};

}  // namespace servetune
