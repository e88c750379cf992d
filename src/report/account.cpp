// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "study/confirmation.hpp"
#include "study/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace servetune {
namespace {

constexpr double further_seconds = 3600;

/// Seconds in which at least one trial of the search ran, and how many were told in them.
std::pair<double, std::size_t> time_of_search(const ReportView& view) {
    std::vector<std::pair<double, double>> spans;
    for (const Trial& trial : view.search)
        if (trial.cost_seconds() > 0) spans.emplace_back(*trial.started_at, *trial.told_at);
    sort(spans);
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
    if (!view.setup.file.measures() || seconds <= 0) return {view.completed(), 0};
    const double each = seconds / double(trials);
    const auto count = std::size_t(std::max(1.0, std::floor(further_seconds / each)));
    return {count, std::max(further_seconds, each)};
}

std::vector<LimitMargin> limit_margins(const ReportView& view, const Standing& served) {
    const Problem& problem = *view.setup.problem;
    const Goal& goal = problem.objective.leading();
    std::vector<LimitMargin> result;
    for (const Limit& limit : problem.objective.limits)
        for (const auto& [workload, value] : limited_figures(served, limit, problem.decision)) {
            LimitMargin one{limit, workload,
                            value, limit.at_least ? value - limit.bound : limit.bound - value,
                            {},    {}};
            const Standing* best = nullptr;
            for (const Standing& other : view.standings.all()) {
                if (other.measured() == 0 || other.passes() ||
                    !goal.better(other.estimate().mean, served.estimate().mean))
                    continue;
                const auto figures = limited_figures(other, limit, problem.decision);
                const auto* at = entry_in(figures, workload);
                if (at == nullptr || limit.keeps(*at)) continue;
                if (best == nullptr || goal.better(other.estimate().mean, best->estimate().mean))
                    best = &other;
            }
            if (best != nullptr) {
                one.refuses = best->configuration;
                one.costs = judged_gain(problem, view.standings, *best, served);
            }
            result.push_back(std::move(one));
        }
    const auto share = [](const LimitMargin& one) {
        return one.limit.bound == 0 ? std::numeric_limits<double>::infinity()
                                    : one.margin / std::abs(one.limit.bound);
    };
    stable_sort(result, [&](const LimitMargin& a, const LimitMargin& b) {
        if (a.refuses.has_value() != b.refuses.has_value()) return a.refuses.has_value();
        return share(a) < share(b);
    });
    return result;
}

std::vector<AtTheEnd> ends_of(const SearchSpace& space, const Configuration& served) {
    std::vector<AtTheEnd> result;
    for (const auto& [name, value] : served.entries()) {
        const Parameter& parameter = space.at(name);
        const auto number = number_of(value);
        if (!parameter.ordered() || value == parameter.default_value || !number) continue;
        std::vector<double> ends;  // levels rise, whatever comes before them
        const auto include = [&](const Value& one) {
            if (const auto size = number_of(one)) ends.push_back(*size);
        };
        std::size_t levels = 3;
        if (parameter.continuous())
            include(parameter.at_position(0)), include(parameter.at_position(1));
        else {
            levels = parameter.level_count() - (parameter.offers_unset ? 1 : 0);
            for (const std::size_t i :
                 {std::size_t{0}, std::size_t{1}, parameter.level_count() - 1})
                if (i < parameter.level_count()) include(parameter.level(i));
        }
        if (levels < 3 || ends.empty()) continue;  // of two each is an end
        const auto [low, high] = std::minmax_element(ends.begin(), ends.end());
        if (*number <= *low || *number >= *high) result.push_back({name, value, *number >= *high});
    }
    return result;
}

}  // namespace

std::optional<WhatLimits> what_limits(const ReportView& view) {
    const Recommendation& recommendation = view.recommendation;
    const Standing* served = view.standings.find(recommendation.recommended);
    if (recommendation.conclusion == Conclusion::nothing_passes || served == nullptr ||
        served->measured() == 0)
        return std::nullopt;
    return WhatLimits{limit_margins(view, *served),
                      ends_of(view.problem().space, recommendation.recommended)};
}

Explained Explained::of(const ReportView& view) {
    const Problem& problem = view.problem();
    const Recommendation& result = view.recommendation;
    const Bayesian bayesian(view.setup.bayesian_options());
    const Explanation models(problem, view.trials, bayesian);
    Explained explained{models.effects(), what_limits(view)};
    const Standing* served = view.standings.find(result.recommended);
    if (result.conclusion == Conclusion::nothing_passes || served == nullptr || !served->passes())
        explained.no_more = "nothing passes yet, so there is nothing to gain over";
    else if (result.conclusion == Conclusion::inconclusive)
        explained.no_more = "the study is inconclusive";
    else if (2 * (result.disturbed + result.unsound) >= std::max<std::size_t>(result.results, 1))
        explained.no_more = fmt::format("{} of {} results were disturbed or are unsound",
                                        result.disturbed + result.unsound, result.results);
    else if (result.keep_default && any_of(view.search, confirms))
        explained.no_more = "what looked best was measured in turn with the default, which is kept";
    else if (const EffectsFloor& floor = explained.effects.floor; !floor.enough()) {
        explained.no_more =
            fmt::format("{} measured, and the models need {}",
                        counted_text(floor.measured, "configuration"), floor.needed());
    } else {
        const auto [trials, seconds] = trials_of_an_hour(view);
        MoreTrials& more = explained.more.emplace();
        more.further = models.further(result.recommended, trials, problem.decision.min_gain);
        more.seconds = seconds;
        more.likely = more.further.chance_changed > 0.5;
    }
    return explained;
}

}  // namespace servetune
