// SPDX-License-Identifier: Apache-2.0
#include "prediction.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

namespace servetune {
namespace {

double value_of(const PredictedTrial& prediction, const Objective& objective) {
    return std::get<Measurement>(prediction.outcome)
        .metrics.find(objective.leading().metric)
        ->second.value;
}

}  // namespace

std::vector<PredictedTrial> predict(const SimulateEvaluator& evaluator,
                                    std::span<const Configuration> configurations,
                                    std::size_t threads, const std::stop_token& stop) {
    std::vector<PredictedTrial> result(configurations.size());
    std::atomic<std::size_t> next{0};
    std::exception_ptr error;
    std::mutex guard;
    const auto work = [&] {
        for (std::size_t i = next++; i < configurations.size() && !stop.stop_requested();
             i = next++) {
            try {
                result[i] = {configurations[i], evaluator.predicted(configurations[i])};
            } catch (...) {
                const std::lock_guard lock(guard);
                error = std::current_exception();
                next = configurations.size();
            }
        }
    };
    {
        std::vector<std::jthread> workers;
        for (std::size_t i = 1; i < threads; ++i) workers.emplace_back(work);
        work();
    }
    if (error) std::rethrow_exception(error);
    return result;
}

bool passes(const PredictedTrial& prediction, const Objective& objective) {
    const auto* measurement = std::get_if<Measurement>(&prediction.outcome);
    if (measurement == nullptr || !measurement->metrics.contains(objective.leading().metric))
        return false;
    return all_of(objective.limits, [&](const Limit& limit) {
        return limit.holds(measurement->metrics).value_or(true);
    });
}

std::vector<const PredictedTrial*> ranked(std::span<const PredictedTrial> predictions,
                                          const Objective& objective) {
    std::vector<const PredictedTrial*> result;
    for (const PredictedTrial& prediction : predictions)
        if (passes(prediction, objective)) result.push_back(&prediction);
    sort(result, [&](const PredictedTrial* a, const PredictedTrial* b) {
        const double x = value_of(*a, objective);
        const double y = value_of(*b, objective);
        if (x != y) return objective.leading().better(x, y);
        return a->configuration.fingerprint().bits < b->configuration.fingerprint().bits;
    });
    return result;
}

std::vector<PredictedTrial> search_predictions(const SimulateEvaluator& evaluator,
                                               const Problem& problem,
                                               const PredictionSearch& search,
                                               const std::stop_token& stop) {
    std::vector<PredictedTrial> found;
    std::set<std::uint64_t> seen;
    const auto try_all = [&](const std::vector<Configuration>& wanted) {
        std::vector<Configuration> fresh;
        for (const Configuration& configuration : wanted)
            if (found.size() + fresh.size() < search.most &&
                seen.insert(configuration.fingerprint().bits).second)
                fresh.push_back(configuration);
        for (PredictedTrial& prediction : predict(evaluator, fresh, search.threads, stop))
            found.push_back(std::move(prediction));
        return !fresh.empty() && !stop.stop_requested();
    };
    std::vector<Configuration> start{problem.space.default_configuration()};
    Rng rng(search.seed);
    const bool small =
        problem.feasible.finite() && problem.feasible.size() <= double(search.configurations);
    if (small)
        problem.feasible.for_each([&](const Configuration& c) { return start.push_back(c), true; });
    else
        for (std::size_t i = 0; i < search.configurations; ++i)
            start.push_back(problem.feasible.sample(rng));
    if (!try_all(start) || small) return found;
    std::set<std::uint64_t> climbed;
    while (found.size() < search.most && !stop.stop_requested()) {
        auto best = ranked(found, problem.objective);
        best.resize(std::min(best.size(), search.climbers));
        const auto next = find_if(best, [&](const PredictedTrial* p) {
            return !climbed.contains(p->configuration.fingerprint().bits);
        });
        if (next == best.end()) break;
        const Configuration from = (*next)->configuration;
        climbed.insert(from.fingerprint().bits);
        (void)try_all(neighbours(problem.space, from));
    }
    return found;
}

namespace {

/// How many parameters of a configuration are not at their defaults.
std::size_t changes_of(const SearchSpace& space, const Configuration& configuration) {
    const auto& entries = configuration.entries();
    return count_if(entries, [&](const auto& entry) {
        return entry.second != space.at(entry.first).default_value;
    });
}

/// What the objective sees of a prediction, as it is printed: to six digits.
std::vector<std::string> figures_of(const Outcome& outcome, const Objective& objective) {
    std::vector<std::string> result;
    const auto* measurement = std::get_if<Measurement>(&outcome);
    if (measurement == nullptr) return result;
    const auto add = [&](const std::string& name) {
        const auto* metric = entry_in(measurement->metrics, name);
        result.push_back(metric == nullptr ? "" : significant_text(metric->value, 6));
    };
    for (const Goal& goal : objective.goals) add(goal.metric);
    for (const Limit& limit : objective.limits) add(limit.metric);
    return result;
}

/// The same prediction of fewer flags: whatever changes none of its figures goes back to its
/// default.
PredictedTrial without_idle(const SimulateEvaluator& evaluator, const Problem& problem,
                            PredictedTrial trial) {
    const SearchSpace& space = problem.space;
    const auto figures = figures_of(trial.outcome, problem.objective);
    for (const Parameter& parameter : space.parameters()) {
        const Value* value = trial.configuration.find(parameter.name);
        if (value == nullptr || *value == parameter.default_value) continue;
        const Configuration smaller =
            space.changed(trial.configuration, {{parameter.name, parameter.default_value}});
        if (!space.feasible(smaller) ||
            changes_of(space, smaller) >= changes_of(space, trial.configuration))
            continue;
        if (Outcome outcome = evaluator.predicted(smaller);
            figures_of(outcome, problem.objective) == figures)
            trial = {smaller, std::move(outcome)};
    }
    return trial;
}

}  // namespace

std::vector<PredictedTrial> distinct(const SimulateEvaluator& evaluator, const Problem& problem,
                                     const std::vector<const PredictedTrial*>& best,
                                     std::size_t top, const std::stop_token& stop) {
    std::vector<PredictedTrial> result;
    std::set<std::vector<std::string>> seen;
    for (const PredictedTrial* trial : best)
        if (result.size() < top &&
            seen.insert(figures_of(trial->outcome, problem.objective)).second)
            result.push_back(stop.stop_requested() ? *trial  // what was found so far is still shown
                                                   : without_idle(evaluator, problem, *trial));
    return result;
}

}  // namespace servetune
