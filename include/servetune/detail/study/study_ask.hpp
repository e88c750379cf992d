// SPDX-License-Identifier: Apache-2.0
#pragma once

// What Study::ask answers. Included by study.hpp.
#include "servetune/detail/base/number_text.hpp"
#include "servetune/study.hpp"

namespace servetune {

inline bool Study::search_goes_on(const Budget& budget, double seconds,
                                  std::span<const Trial> history) const {
    if (!problem_.is_confirmed()) return true;
    const auto searched = static_cast<std::size_t>(
        std::count_if(history.begin(), history.end(), [](const Trial& t) { return !confirms(t); }));
    if (searched >= search_trials(problem_, budget.trials)) return false;
    const double time_for = trials_in_time(budget, seconds);
    if (time_for >= static_cast<double>(budget.trials)) return true;
    const auto in_all = history.size() + static_cast<std::size_t>(time_for);
    return !confirming_ && time_for >= 1 + static_cast<double>(confirmation_reserve(in_all));
}

inline AskResult Study::next(const Budget& budget, double began) {
    if (!unoffered_.empty())
        return AskResult(trials_[unoffered_.extract(unoffered_.begin()).value()]);
    const std::vector<Trial> history = search_history(problem_, trials_);
    if (history.empty())
        return AskResult(
            add(problem_.space.default_configuration(), "", "the default configuration"));
    const double seconds = options_.steady() - began;
    if (!search_goes_on(budget, seconds, history)) {
        AskResult confirming =
            next_to_confirm(budget, seconds, history,
                            {StopReason::trials_spent, "the budget of the search is spent"});
        const bool nothing_to_confirm = confirming.finished() != nullptr &&
                                        std::none_of(history.begin(), history.end(), confirms);
        if (!nothing_to_confirm) return confirming;  // else what was kept for it is searched with
    }
    if (default_again_is_due(problem_, history, options_.default_again_every))
        return AskResult(add(problem_.space.default_configuration(), "",
                             "the default again: does the machine drift?"));
    Rng rng(derive_seed(options_.seed, history.size()));
    Answer answer = strategy_.ask(problem_, history, rng);
    if (auto* proposal = std::get_if<Proposal>(&answer)) {
        check_feasible(proposal->configuration, "strategy '" + strategy_.name() + "' proposed ");
        return AskResult(add(std::move(proposal->configuration), "", std::move(proposal->why)));
    }
    if (auto* finished = std::get_if<Finished>(&answer))
        return next_to_confirm(budget, seconds, history,
                               {StopReason::strategy_finished, std::move(finished->why)});
    return AskResult(AskResult::Waiting{});
}

inline AskResult Study::next_to_confirm(const Budget& budget, double seconds,
                                        std::span<const Trial> history,
                                        const AskResult::Finished& searched) {
    if (!problem_.is_confirmed()) return AskResult(searched);
    const double in_time = static_cast<double>(history.size()) + trials_in_time(budget, seconds);
    const std::size_t most = in_time < static_cast<double>(budget.trials)
                                 ? static_cast<std::size_t>(in_time)
                                 : budget.trials;
    Answer answer = Confirmation(problem_, history, most).next();
    if (auto* proposal = std::get_if<Proposal>(&answer)) {
        confirming_ = true;
        return AskResult(add(std::move(proposal->configuration), "", std::move(proposal->why)));
    }
    if (const auto* finished = std::get_if<Finished>(&answer))
        return AskResult(AskResult::Finished{searched.reason, searched.why + "; " + finished->why});
    return AskResult(AskResult::Waiting{});
}

inline std::string Study::why_spent(const Budget& budget, StopReason reason) const {
    if (reason == StopReason::trials_spent || told_in_search() > 0 || trial_seconds(budget) <= 0)
        return "the budget is spent";
    return "there is no time for a single trial, which is expected to take " +
           seconds_text(trial_seconds(budget));
}

inline std::optional<AskResult::Finished> Study::ended(const Budget& budget, double began,
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

}  // namespace servetune
