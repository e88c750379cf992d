// SPDX-License-Identifier: Apache-2.0
#include "account.hpp"

#include "perf/quick_estimate.hpp"
#include "predict/study_fit.hpp"
#include "search/insight.hpp"
#include "servetune/detail/base/number_text.hpp"
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
    if (!view.setup.file.measures() || seconds <= 0) return {view.completed(), 0};
    const double each = seconds / static_cast<double>(trials);
    const auto count = static_cast<std::size_t>(std::max(1.0, std::floor(further_seconds / each)));
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
                const auto at = figures.find(workload);
                if (at == figures.end() || limit.keeps(at->second)) continue;
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
    std::stable_sort(result.begin(), result.end(), [&](const LimitMargin& a, const LimitMargin& b) {
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
        double low = std::numeric_limits<double>::infinity();
        double high = -low;
        std::size_t levels = 0;
        const auto include = [&](const Value& one) {
            if (const auto size = number_of(one))
                low = std::min(low, *size), high = std::max(high, *size), ++levels;
        };
        if (parameter.continuous())
            include(parameter.at_position(0)), include(parameter.at_position(1)), levels = 3;
        else {
            // Levels rise, whatever comes before them.
            for (const std::size_t i :
                 {std::size_t{0}, std::size_t{1}, parameter.level_count() - 1})
                if (i < parameter.level_count()) include(parameter.level(i));
            levels = parameter.level_count() - (parameter.offers_unset ? 1 : 0);
        }
        constexpr std::size_t least_levels = 3;  // of two each is an end
        if (levels >= least_levels && (*number <= low || *number >= high))
            result.push_back({name, value, *number >= high});
    }
    return result;
}

/// Whether a prediction of this metric has its level too, not only its ratios.
bool has_level(const std::string& metric) {
    for (const char* high : {"_p90_", "_p95_", "_p99_"})
        if (metric.find(high) != std::string::npos) return false;
    return QuickEstimate{1, 1, 1, 1, 1, 1, 1}.metric(metric).has_value();
}

double median_error(const std::vector<Predicted::Row>& rows, bool fitted) {
    std::vector<double> errors;
    for (const Predicted::Row& row : rows)
        if (row.fitted)
            errors.push_back(std::abs((fitted ? *row.fitted : row.shipped) / row.measured - 1));
    if (errors.empty()) return 0;
    const auto half = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), half, errors.end());
    return *half;
}

}  // namespace

namespace {

Account account_by(const ReportView& view, const FittedHistory& fitted) {
    const Problem& problem = *view.setup.problem;
    const Recommendation& result = view.recommendation;
    const Outlook outlook(fitted);
    Account account{ladder_of(view, outlook), what_limits(view), {}, {}, serving_costs(view)};
    const Standing* served = view.standings.find(result.recommended);
    if (result.conclusion == Conclusion::nothing_passes || served == nullptr || !served->passes())
        account.no_more = "nothing passes yet, so there is nothing to gain over";
    else if (!outlook.enough()) {
        const EffectsFloor floor = EffectsFloor::of(problem.space, view.standings);
        account.no_more =
            fmt::format("{} measured, and the models need {}",
                        counted_text(floor.measured, "configuration"), floor.needed());
    } else {
        const auto [trials, seconds] = trials_of_an_hour(view);
        MoreTrials& more = account.more.emplace();
        more.further = outlook.further(result.recommended, trials, problem.decision.min_gain);
        more.seconds = seconds;
        more.likely = more.further.chance_changed > 0.5;
    }
    return account;
}

}  // namespace

Account account_of(const ReportView& view) {
    const Bayesian bayesian(view.setup.bayesian_options());
    return account_by(view, {view.problem(), view.trials, bayesian, view.setup.beliefs});
}

std::optional<WhatLimits> what_limits(const ReportView& view) {
    const Recommendation& recommendation = view.recommendation;
    const Standing* served = view.standings.find(recommendation.recommended);
    if (recommendation.conclusion == Conclusion::nothing_passes || served == nullptr ||
        served->measured() == 0)
        return std::nullopt;
    const StudyFile& file = view.setup.file;
    WhatLimits result;
    result.limits = limit_margins(view, *served);
    result.at_the_end = ends_of(view.setup.problem->space, recommendation.recommended);
    if (!file.has_commands() || file.model.empty() || file.machine.chip().empty()) {
        result.no_resources = "the cost model wants an engine, a model and hardware that it knows";
        if (file.machine.chip().empty())
            result.no_resources += "; the study has no `hardware: NAME`";
        return result;
    }
    try {
        const auto evaluator = simulated(file);
        result.resources =
            resource_gains(*evaluator, recommendation.recommended,
                           view.setup.problem->objective.leading(), file.weighted_workloads());
        result.doubts = doubts_of_cost_model(file);
        if (const Value* engine = recommendation.recommended.find("engine"))
            std::erase_if(result.doubts, [&](const std::string& one) {
                return one.find(" of " + text_of(*engine) + " ") == std::string::npos;
            });
        if (result.resources.empty())
            result.no_resources = "the cost model does not estimate this goal for this command";
    } catch (const Error&) {
        result.no_resources =
            "the cost model knows too little of this engine, model, hardware or traffic ('autotune "
            "simulate' says what)";
    }
    return result;
}

std::optional<Predicted> predicted_of(const ReportView& view) {
    const Problem& problem = *view.setup.problem;
    const Beliefs& beliefs = view.setup.beliefs;
    if (beliefs.size() == 0 || !has_level(problem.objective.leading().metric)) return std::nullopt;
    const auto now = beliefs[0].fitted_to(view.search, problem.decision);
    if (!now) return std::nullopt;
    Predicted result{now->name()};
    for (const Standing& standing : view.standings.all()) {
        if (standing.measured() == 0) continue;
        const auto shipped = beliefs[0].belief(standing.configuration).log_value;
        if (!shipped) continue;
        Predicted::Row row{standing.configuration, standing.estimate().mean, std::exp(*shipped)};
        const auto first = std::find_if(
            view.search.begin(), view.search.end(),
            [&](const Trial& trial) { return trial.configuration == standing.configuration; });
        const std::span<const Trial> before(view.search.begin(), first);
        if (const auto then = beliefs[0].fitted_to(before, problem.decision))
            if (const auto fitted = then->belief(standing.configuration).log_value)
                row.fitted = std::exp(*fitted);
        result.rows.push_back(std::move(row));
    }
    result.shipped_error = median_error(result.rows, false);
    result.fitted_error = median_error(result.rows, true);
    result.doubts = doubts_of_cost_model(view.setup.file);
    return result.rows.empty() ? std::nullopt : std::optional(std::move(result));
}

Explained Explained::of(const ReportView& view) {
    const Bayesian bayesian(view.setup.bayesian_options());
    const FittedHistory fitted(view.problem(), view.trials, bayesian, view.setup.beliefs);
    return {Effects(fitted), account_by(view, fitted)};
}

}  // namespace servetune
