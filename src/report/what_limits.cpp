// SPDX-License-Identifier: Apache-2.0
#include "what_limits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace servetune {
namespace {

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

}  // namespace

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

}  // namespace servetune
