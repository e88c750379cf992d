// SPDX-License-Identifier: Apache-2.0
#include "servetune/explanation.hpp"

#include "base/probability.hpp"
#include "insight.hpp"
#include "model_cache.hpp"
#include "servetune/error.hpp"
#include "servetune/search_space.hpp"
#include "trial_cost.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servetune {
namespace {

/// The history as it was when a trial was asked: what was told later was under way.
std::vector<Trial> before(std::span<const Trial> trials, const Trial& asked) {
    std::vector<Trial> result;
    for (const Trial& trial : trials) {
        if (trial.id >= asked.id) continue;
        result.push_back(trial);
        if (trial.told_at && asked.asked_at > 0 && *trial.told_at > asked.asked_at)
            result.back().outcome = {};
    }
    return result;
}

}  // namespace

Explanation::Explanation(const Problem& problem, std::span<const Trial> trials,
                         const Bayesian& bayesian)
    : fitted_(std::make_unique<const FittedHistory>(problem, trials, bayesian.options())) {}

Explanation::~Explanation() = default;

EffectsFloor Explanation::floor() const { return fitted_->floor; }

TrialExplanation Explanation::trial(std::uint64_t id) const {
    const auto found = find_if(fitted_->trials, [&](const Trial& trial) { return trial.id == id; });
    if (found == fitted_->trials.end())
        throw UsageError("there is no trial " + std::to_string(id) + " of the search; there are " +
                         std::to_string(fitted_->trials.size()));
    TrialExplanation result;
    result.trial = &*found;
    const Standings alone(std::span<const Trial>(&*found, 1), fitted_->problem.objective,
                          fitted_->problem.decision, found->configuration);
    if (const Standing& standing = alone.all().front(); standing.measured() > 0)
        result.measured = standing.estimate().mean;

    const std::vector<Trial> history = before(fitted_->trials, *found);
    for (const Trial& trial : history) result.told_before += trial.told() ? 1 : 0;
    if (result.told_before == 0) return result;
    const Standings standings = fitted_->problem.standings(history);
    const Beliefs believed = fitted_->given_beliefs.fitted_to(history, fitted_->problem.decision);
    const PendingAwareModel model =
        learned_anew(fitted_->problem, standings, fitted_->geometry, believed, fitted_->seed);
    const auto figure = [&](double standardised) {
        return standings.scale().figure(model.scale().value(standardised));
    };
    const CandidateScore score = model
                                     .scores({fitted_->geometry.encode(found->configuration)},
                                             {believed.of(found->configuration)})
                                     .front();
    Expectation& expected = result.expected.emplace();
    expected.scale = standings.scale();
    const auto& evidence = model.evidence();
    if (any_of(evidence, [](const ConfigurationEvidence& entry) { return entry.measured(); })) {
        const double reach = normal_95 * std::sqrt(score.objective.variance);
        const auto [low, high] = std::minmax(
            {figure(score.objective.mean - reach), figure(score.objective.mean + reach)});
        expected.objective = {figure(score.objective.mean), low, high};
        expected.deviation = (high - low) / (2 * normal_95);
    }
    if (const auto incumbent = model.incumbent()) {
        expected.best = figure(model.at_evidence()[*incumbent].mean);
        if (model.tradeoff() == nullptr)
            expected.expected_gain =
                std::expm1(model.scale().spread() * std::exp(score.log_improvement));
    }
    expected.chance_works = std::exp(score.log_works);
    expected.chance_limits = std::exp(score.log_limits);
    expected.belief_weight = model.objective().belief_weight();
    expected.seconds = TrialCost(fitted_->geometry, evidence)
                           .seconds(fitted_->geometry.encode(found->configuration));
    return result;
}

}  // namespace servetune
