// SPDX-License-Identifier: Apache-2.0
#pragma once

// Study::run and what it is made of. Included by study.hpp.
#include "servetune/detail/base/plain_words.hpp"
#include "servetune/study.hpp"

namespace servetune {

inline bool Study::evaluate(const Trial& trial, Evaluator& evaluator, const std::stop_token& stop,
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

inline void Study::prepare(const Evaluator& evaluator, Observer* observer) {
    problem_.replicates_inform = problem_.replicates_inform && evaluator.replicates_inform();
    take_up_open_trials();  // also those that were asked by hand before
    tell_deadly(observer);
}

inline AskResult::Finished Study::search(Evaluator& evaluator, const Budget& budget, double began,
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

inline std::optional<StopReason> Study::confirm_and_report(Evaluator& evaluator,
                                                           const Budget& budget, double began,
                                                           const std::stop_token& stop,
                                                           Observer* observer) {
    const auto measure = [this, &evaluator, &budget, began, &stop,
                          observer](const auto& trial) -> std::optional<StopReason> {
        if (stop.stop_requested()) return StopReason::stopped_by_user;
        if (const auto reason = time_spent(budget, options_.steady() - began)) return reason;
        return evaluate(trial(), evaluator, stop, observer)
                   ? std::nullopt
                   : std::optional(StopReason::stopped_by_user);
    };
    constexpr int most_confirmed =
        5;  // each costs a trial beyond the budget; a cache that flatters more than these is no use
    Recommendation result = recommendation();
    for (int i = 0; result.to_confirm && i < most_confirmed; ++i, result = recommendation())
        if (const auto reason =
                measure([&] { return add(*result.to_confirm, "", "confirmed from a cold start"); }))
            return reason;
    if (!result.best) return std::nullopt;
    for (const std::string& workload : options_.report_workloads)
        for (const Configuration& configuration :
             {result.default_configuration, result.recommended}) {
            const auto mine = [&](const Trial& trial) {
                return trial.workload == workload && trial.configuration == configuration;
            };
            const auto found = std::find_if(trials_.begin(), trials_.end(), mine);
            if (found != trials_.end() && found->told()) continue;
            const auto trial = [&] {
                return found != trials_.end() ? *found
                                              : add(configuration, workload, "report: " + workload);
            };
            if (const auto reason = measure(trial)) return reason;
        }
    return std::nullopt;
}

inline Summary Study::run(Evaluator& evaluator, const Budget& budget, const std::stop_token& stop,
                          Observer* observer) {
    Summary summary;
    try {
        check_options("the budget", budget.why_invalid());
        const double began = options_.steady();
        problem_.trials = budget.known_trials();
        if (observer != nullptr && !trials_.empty()) observer->resumed(trials_);
        prepare(evaluator, observer);
        AskResult::Finished finished = search(evaluator, budget, began, stop, observer);
        summary.reason = finished.reason;
        summary.message = std::move(finished.why);
        if (summary.reason != StopReason::stopped_by_user)
            summary.reason = confirm_and_report(evaluator, budget, began, stop, observer)
                                 .value_or(summary.reason);
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

}  // namespace servetune
