// SPDX-License-Identifier: Apache-2.0
#include "servetune/workers.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/plain_words.hpp"
#include "servetune/detail/study/clocks.hpp"

namespace servetune {

Summary WorkersRun::run(const std::stop_token& stop) {
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

std::optional<double> WorkersRun::figure(const Outcome& outcome) const {
    const auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr || !problem_.decision.believes(*measurement)) return std::nullopt;
    const auto found = measurement->metrics.find(problem_.objective.leading().metric);
    if (found == measurement->metrics.end() || !(found->second.value > 0)) return std::nullopt;
    return (problem_.objective.leading().direction == Direction::maximize ? 1 : -1) *
           std::log(found->second.value);
}

bool WorkersRun::may_share(WorkerPool& pool) {
    if (!problem_.replicates_inform) return true;
    if (const std::vector<const Trial*> found = earlier_check();
        found.size() == evaluators_.size()) {
        for (std::size_t worker = 0; worker < found.size(); ++worker)
            if (found[worker]->measurement() == nullptr) pool.retire(worker);
        return pool.size() > 1;
    }
    for (const Trial& trial : study_.trials())  // of a check that did not come to its end
        if (trial.purpose == Purpose::worker_check && !trial.told())
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

std::vector<const Trial*> WorkersRun::earlier_check() const {
    std::vector<const Trial*> result;
    for (const Trial& trial : study_.trials()) {
        const bool counts =
            trial.purpose == Purpose::worker_check && trial.told() &&
            (trial.failure() == nullptr || trial.failure()->message != interrupted_words);
        if (!counts) continue;
        if (!result.empty() && result.back()->id + 1 != trial.id) result.clear();
        result.push_back(&trial);
    }
    return result;
}

std::optional<double> WorkersRun::default_alone(WorkerPool& pool) {
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

bool WorkersRun::judge(WorkerPool& pool, double alone, std::vector<WorkerPool::Done>& together) {
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

std::map<std::size_t, std::string> WorkersRun::odd_workers(
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
            const double median = (others[(others.size() - 1) / 2] + others[others.size() / 2]) / 2;
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

AskResult::Finished WorkersRun::search(WorkerPool& pool) {
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

}  // namespace servetune
