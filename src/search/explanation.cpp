// SPDX-License-Identifier: Apache-2.0
#include "servetune/explanation.hpp"

#include "base/probability.hpp"
#include "candidates.hpp"
#include "insight.hpp"
#include "servetune/error.hpp"
#include "servetune/search_space.hpp"
#include "trial_cost.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace servetune {
namespace {

ShownLevel shown_level(const Parameter& parameter, const Value& level) {
    return {parameter, level,
            parameter.continuous() ? Explanation::quartiles : Explanation::most_levels};
}

std::vector<Value> explained_levels(const Parameter& parameter) {
    std::vector<Value> result;
    for (const std::size_t level : spread_levels(parameter, Explanation::most_levels))
        result.push_back(parameter.level(level));
    if (parameter.continuous())
        for (std::size_t i = 0; i < Explanation::quartiles; ++i)
            result.emplace_back(
                parameter.at_position(static_cast<double>(i) / (Explanation::quartiles - 1)));
    return result;
}

RefusedLevels refused_levels(const Problem& problem, const Standings& standings) {
    std::vector<std::pair<const Parameter*, Value>> levels;
    for (const Parameter& parameter : problem.space.parameters())
        for (Value& level : explained_levels(parameter))
            levels.emplace_back(&parameter, std::move(level));
    std::vector<ShownLevel> shown;
    for (const auto& [parameter, level] : levels) shown.push_back(shown_level(*parameter, level));
    return {standings, shown};
}

/// Weighted configurations.
struct WeightedVariants {
    std::vector<EncodedPoint> points{};
    std::vector<std::vector<PriorBelief>> beliefs{};
    std::vector<double> weights{};
    std::size_t terms = 0;
};

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

/// All of a small space, else an even draw, always the same one.
std::vector<Configuration> distinct_sample(const Problem& problem) {
    std::vector<Configuration> result;
    if (problem.feasible.finite() &&
        problem.feasible.size() <= static_cast<double>(Explanation::max_drawn)) {
        problem.feasible.for_each([&](const Configuration& configuration) {
            return result.push_back(configuration), true;
        });
        return result;
    }
    Rng rng(fingerprint_of(Candidates::key_of(problem)).bits);
    std::set<Configuration> drawn;
    for (std::size_t i = 0; i < 2 * Explanation::max_drawn && drawn.size() < Explanation::max_drawn;
         ++i)
        if (Configuration one = problem.feasible.sample(rng); drawn.insert(one).second)
            result.push_back(std::move(one));
    return result;
}

using Changes = std::vector<std::pair<Assignment, double>>;

/// Each configuration of the sample in several variants with weights that add to 0; only where all
/// of them are feasible. At most `most` of them.
WeightedVariants contrast_of(const FittedHistory& fitted, const std::vector<Configuration>& sample,
                             const Changes& changes, std::size_t most) {
    WeightedVariants result;
    for (const Configuration& configuration : sample) {
        if (result.terms >= most) break;
        std::vector<Configuration> variants;
        for (const auto& [change, weight] : changes) {
            const auto active_in = [&, &wanted = change](const Configuration& where) {
                return std::all_of(wanted.begin(), wanted.end(), [&](const auto& entry) {
                    return where.find(entry.first) != nullptr;
                });
            };
            if (!active_in(configuration)) break;
            Assignment values = configuration.assignment();
            for (const auto& [name, value] : change) values[name] = value;
            Configuration variant = fitted.problem.space.completed(values);
            if (!active_in(variant) || !fitted.problem.space.feasible(variant)) break;
            variants.push_back(std::move(variant));
        }
        if (variants.size() < changes.size()) continue;
        ++result.terms;
        for (std::size_t i = 0; i < variants.size(); ++i) {
            result.points.push_back(fitted.geometry.encode(variants[i]));
            result.beliefs.push_back(fitted.beliefs.of(variants[i]));
            result.weights.push_back(changes[i].second);
        }
    }
    for (double& weight : result.weights) weight /= static_cast<double>(result.terms);
    return result;
}

/// Standardised: more is better.
double contrast_mean(const PendingAwareModel& model, const WeightedVariants& contrast) {
    const std::vector<Prediction> predictions =
        model.objective().mixed(contrast.points, model.believed(contrast.beliefs));
    double sum = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i)
        sum += contrast.weights[i] * predictions[i].mean;
    return sum;
}

Prediction posterior_of(const FittedHistory& fitted, const WeightedVariants& contrast) {
    const auto count = static_cast<Eigen::Index>(contrast.weights.size());
    const Eigen::VectorXd weights =
        Eigen::Map<const Eigen::VectorXd>(contrast.weights.data(), count);
    return posterior_of(*fitted.model(), fitted.geometry,
                        {contrast.points, contrast.beliefs, weights})
        .front();
}

}  // namespace

Explanation::Explanation(const Problem& problem, std::span<const Trial> trials,
                         const Bayesian& bayesian, const Beliefs& beliefs)
    : given_beliefs_(beliefs),
      fitted_(std::make_unique<const FittedHistory>(problem, trials, bayesian, beliefs)) {}

Explanation::~Explanation() = default;

EffectsFloor Explanation::floor() const { return fitted_->floor; }
FigureScale Explanation::scale() const { return fitted_->standings.scale(); }

TrialExplanation Explanation::trial(std::uint64_t id) const {
    const auto found = std::find_if(fitted_->trials.begin(), fitted_->trials.end(),
                                    [&](const Trial& trial) { return trial.id == id; });
    if (found == fitted_->trials.end())
        throw UsageError("there is no trial " + std::to_string(id) + " of the search; there are " +
                         std::to_string(fitted_->trials.size()));
    TrialExplanation result;
    result.trial = &*found;
    const Standings alone(std::span<const Trial>(&*found, 1), fitted_->problem.objective,
                          fitted_->problem.decision);
    if (const Standing& standing = alone.all().front(); standing.measured() > 0)
        result.measured = standing.estimate().mean;

    const std::vector<Trial> history = before(fitted_->trials, *found);
    for (const Trial& trial : history) result.told_before += trial.told() ? 1 : 0;
    if (result.told_before == 0) return result;
    const Standings standings(history, fitted_->problem.objective, fitted_->problem.decision,
                              fitted_->problem.space.default_configuration());
    const PendingAwareModel model =
        fitted_->bayesian.learned(fitted_->problem, standings, fitted_->geometry);
    const auto figure = [&](double standardised) {
        return standings.scale().figure(model.scale().value(standardised));
    };
    const Beliefs believed = given_beliefs_.fitted_to(history, fitted_->problem.decision);
    const CandidateScore score = model
                                     .scores({fitted_->geometry.encode(found->configuration)},
                                             {believed.of(found->configuration)})
                                     .front();
    Expectation& expected = result.expected.emplace();
    expected.scale = standings.scale();
    const auto& evidence = model.evidence();
    if (std::any_of(evidence.begin(), evidence.end(),
                    [](const ConfigurationEvidence& entry) { return entry.measured(); })) {
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
    expected.seconds =
        TrialCost(fitted_->geometry, evidence, fitted_->bayesian.options().learning.search)
            .seconds(fitted_->geometry.encode(found->configuration));
    return result;
}

std::vector<Effect> Explanation::effects() const {
    std::vector<Effect> result;
    std::vector<Prediction> found;
    const PendingAwareModel* learned = fitted_->model();
    if (learned == nullptr) return result;
    const RefusedLevels refused = refused_levels(fitted_->problem, fitted_->standings);
    const std::vector<Configuration> drawn = refused.without(distinct_sample(fitted_->problem));
    for (const Parameter& parameter : fitted_->problem.space.parameters())
        for (const Value& level : explained_levels(parameter)) {
            if (level == parameter.default_value) continue;
            const WeightedVariants pairs =
                contrast_of(*fitted_, drawn,
                            {{{{parameter.name, level}}, 1.0},
                             {{{parameter.name, parameter.default_value}}, -1.0}},
                            most_pairs);
            if (pairs.terms == 0) continue;
            const std::vector<ShownLevel> shown{shown_level(parameter, level)};
            result.push_back({parameter.name,
                              level,
                              {},
                              pairs.terms,
                              measured_with(learned->evidence(), shown),
                              refused.why(shown)});
            if (result.back().refused.empty()) found.push_back(posterior_of(*fitted_, pairs));
        }
    auto of_next = found.begin();
    for (Effect& effect : result)
        if (effect.refused.empty()) effect.gain = as_gain(*learned, *of_next++, found.size());
    return result;
}

std::vector<Interaction> Explanation::interactions(const std::vector<Effect>& effects) const {
    std::vector<Interaction> result;
    const PendingAwareModel* learned = fitted_->model();
    if (learned == nullptr) return result;
    std::vector<const Effect*> served;
    for (const Effect& effect : effects)
        if (effect.refused.empty()) served.push_back(&effect);
    std::vector<std::vector<const Effect*>> looked_at;  // of each parameter: best and worst
    for (auto from = served.begin(); from != served.end();) {
        const auto to = std::find_if(from, served.end(), [&](const Effect* effect) {
            return effect->parameter != (*from)->parameter;
        });
        const auto [worst, best] = std::minmax_element(
            from, to,
            [](const Effect* a, const Effect* b) { return a->gain.value < b->gain.value; });
        looked_at.push_back({*best});
        if (worst != best) looked_at.back().push_back(*worst);
        from = to;
    }
    const RefusedLevels refused = refused_levels(fitted_->problem, fitted_->standings);
    const std::vector<Configuration> drawn = refused.without(distinct_sample(fitted_->problem));
    struct Candidate {
        const Effect *a = nullptr, *b = nullptr;
        WeightedVariants contrast{};
        double size = 0;
        std::size_t together = 0;
    };
    const auto usual = [&](const Effect& effect) -> const Value& {
        return fitted_->problem.space.at(effect.parameter).default_value;
    };
    std::vector<Candidate> candidates;
    std::size_t combinations = 0;  // that the strongest are chosen from
    for (std::size_t i = 0; i < looked_at.size(); ++i)
        for (std::size_t j = i + 1; j < looked_at.size(); ++j) {
            std::optional<Candidate> strongest;
            for (const Effect* a : looked_at[i])
                for (const Effect* b : looked_at[j]) {
                    const std::vector<ShownLevel> both{
                        shown_level(fitted_->problem.space.at(a->parameter), a->level),
                        shown_level(fitted_->problem.space.at(b->parameter), b->level)};
                    const std::size_t together = measured_with(learned->evidence(), both);
                    if (together < least_together || !refused.why(both).empty()) continue;
                    const Value& usual_a = usual(*a);
                    const Value& usual_b = usual(*b);
                    WeightedVariants four =
                        contrast_of(*fitted_, drawn,
                                    {{{{a->parameter, a->level}, {b->parameter, b->level}}, 1.0},
                                     {{{a->parameter, a->level}, {b->parameter, usual_b}}, -1.0},
                                     {{{a->parameter, usual_a}, {b->parameter, b->level}}, -1.0},
                                     {{{a->parameter, usual_a}, {b->parameter, usual_b}}, 1.0}},
                                    most_fours);
                    if (four.terms == 0) continue;
                    ++combinations;
                    const double size = std::abs(contrast_mean(*learned, four));
                    if (!strongest || size > strongest->size)
                        strongest = Candidate{a, b, std::move(four), size, together};
                }
            if (strongest) candidates.push_back(std::move(*strongest));
        }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
    candidates.resize(std::min(candidates.size(), most_interactions));
    for (const Candidate& candidate : candidates)
        result.push_back(
            {{candidate.a->parameter, candidate.b->parameter},
             {candidate.a->level, candidate.b->level},
             as_gain(*learned, posterior_of(*fitted_, candidate.contrast), combinations),
             candidate.together});
    return result;
}

}  // namespace servetune
