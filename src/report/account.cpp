// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include "gain_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/search/effects_floor.hpp"
#include "servetune/report.hpp"
#include "study/json_values.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {
namespace {

constexpr double further_seconds = 3600;

/// Seconds in which at least one trial of the search ran, and how many were told in them.
std::pair<double, std::size_t> time_of_search(const ReportView& view) {
    std::vector<std::pair<double, double>> spans;
    for (const Trial& trial : view.search)
        if (trial.cost_seconds() > 0) spans.emplace_back(*trial.started_at, *trial.told_at);
    std::sort(spans.begin(), spans.end());
    double seconds = 0;
    double until = -1;
    for (const auto& [from, to] : spans) {
        seconds += std::max(0.0, to - std::max(from, until));
        until = std::max(until, to);
    }
    return {seconds, spans.size()};
}

/// Trials an hour and the seconds that they take; of a study that measures nothing as many as it
/// had, without a time.
std::pair<std::size_t, double> trials_of_an_hour(const ReportView& view) {
    const auto [seconds, trials] = time_of_search(view);
    if (!view.setup.file.measures() || seconds <= 0) return {told_trials(view), 0};
    const double each = seconds / static_cast<double>(trials);
    const auto count = static_cast<std::size_t>(std::max(1.0, std::floor(further_seconds / each)));
    return {count, std::max(further_seconds, each)};
}

nlohmann::ordered_json ladder_gain_json(const LadderGain& one) {
    nlohmann::ordered_json result = gain_json(one.gain);
    result["measured"] = one.measured;
    return result;
}

nlohmann::ordered_json ladder_gain_json(const std::optional<LadderGain>& one) {
    return one ? ladder_gain_json(*one) : nlohmann::ordered_json();
}

nlohmann::ordered_json ladder_json(const Ladder& ladder, const FigureScale& scale) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const LadderStep& step : ladder.steps)
        steps.push_back({{"changes", step.changes},
                         {"configuration", to_json(step.to)},
                         {"gain", ladder_gain_json(step.gain)},
                         {"alone", ladder_gain_json(step.alone)},
                         {"last", ladder_gain_json(step.last)},
                         {"refused", step.refused.empty() ? nlohmann::ordered_json()
                                                          : nlohmann::ordered_json(step.refused)}});
    const auto apart = ladder.not_together;
    return {{"total", gain_json(ladder.total)},
            {"alone_together", apart ? nlohmann::ordered_json(scale.stated(
                                           std::expm1(*apart + std::log1p(ladder.total.value))))
                                     : nlohmann::ordered_json()},
            {"steps", steps}};
}

nlohmann::ordered_json limits_json(const WhatLimits& limits) {
    nlohmann::ordered_json result{{"limits", nlohmann::ordered_json::array()},
                                  {"at_the_end", nlohmann::ordered_json::array()},
                                  {"resources", nlohmann::ordered_json::array()}};
    for (const LimitMargin& one : limits.limits)
        result["limits"].push_back(
            {{"metric", one.limit.metric},
             {"workload", one.workload},
             {one.limit.at_least ? "at_least" : "at_most", one.limit.bound},
             {"value", one.value},
             {"margin", one.margin},
             {"refuses", one.refuses ? to_json(*one.refuses) : nlohmann::ordered_json()},
             {"costs", one.costs ? gain_json(*one.costs) : nlohmann::ordered_json()}});
    for (const AtTheEnd& one : limits.at_the_end)
        result["at_the_end"].push_back({{"parameter", one.parameter},
                                        {"value", text_of(one.value)},
                                        {"end", one.largest ? "largest" : "smallest"}});
    for (const ResourceGain& one : limits.resources)
        result["resources"].push_back({{"resource", one.resource}, {"elasticity", one.elasticity}});
    result["no_resources"] = limits.no_resources;
    result["doubts"] = limits.doubts;
    return result;
}

nlohmann::ordered_json hour_json(const OneMoreHour& hour, const FigureScale& scale) {
    const FurtherGain& further = hour.further;
    return {{"trials", further.trials},
            {"seconds",
             hour.seconds > 0 ? nlohmann::ordered_json(hour.seconds) : nlohmann::ordered_json()},
            {"gain",
             {{"value", scale.stated(further.gain.value)},
              {"low", scale.stated(further.gain.low)},
              {"high", scale.stated(further.gain.high)}}},
            {"chance_worth_having", further.chance_changed},
            {"likely", hour.likely}};
}

nlohmann::ordered_json cost_json(const ServingCosts& costs) {
    const auto figure =
        [](const std::optional<ServingCost::Figure>& one) -> nlohmann::ordered_json {
        if (!one) return nullptr;
        nlohmann::ordered_json result{{"value", one->value}, {"low", nullptr}, {"high", nullptr}};
        if (one->low) result["low"] = *one->low, result["high"] = *one->high;
        return result;
    };
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const ServingCost& one : costs.all)
        rows.push_back({{"unit", one.unit},
                        {"million_tokens", one.tokens},
                        {"default", figure(one.of_default)},
                        {"recommended", figure(one.of_recommended)},
                        {"change", figure(one.change)}});
    return {{"figures", rows}, {"no_dollars", costs.no_dollars}, {"no_energy", costs.no_energy}};
}

}  // namespace

std::size_t told_trials(const ReportView& view) {
    return static_cast<std::size_t>(std::count_if(view.search.begin(), view.search.end(),
                                                  [](const Trial& one) { return one.told(); }));
}

Account account_of(const ReportView& view) {
    const Problem& problem = *view.setup.problem;
    const Recommendation& result = view.recommendation;
    const Bayesian bayesian(view.setup.bayesian_options());
    const Outlook outlook(problem, view.trials, bayesian, view.setup.beliefs);
    Account account{ladder_of(view, outlook), what_limits(view), {}, {}, serving_costs(view)};
    const Standing* served = view.standings.find(result.recommended);
    if (result.conclusion == Conclusion::nothing_passes || served == nullptr || !served->passes())
        account.no_hour = "nothing passes yet, so there is nothing to gain over";
    else if (!outlook.enough()) {
        const EffectsFloor floor = EffectsFloor::of(problem.space, view.standings);
        account.no_hour =
            fmt::format("{} measured, and the models need {}",
                        counted_text(floor.measured, "configuration"), floor.needed());
    } else {
        const auto [trials, seconds] = trials_of_an_hour(view);
        OneMoreHour& hour = account.hour.emplace();
        hour.further = outlook.further(result.recommended, trials, problem.decision.min_gain);
        hour.seconds = seconds;
        hour.likely = hour.further.chance_changed > 0.5;
    }
    return account;
}

nlohmann::ordered_json account_json(const Account& account, const ReportView& view) {
    const FigureScale& scale = view.standings.scale();
    return {
        {"ladder", account.ladder ? ladder_json(*account.ladder, scale) : nlohmann::ordered_json()},
        {"what_limits", account.limits ? limits_json(*account.limits) : nlohmann::ordered_json()},
        {"one_more_hour",
         account.hour ? hour_json(*account.hour, scale) : nlohmann::ordered_json()},
        {"cost", cost_json(account.costs)}};
}

}  // namespace servetune
