// SPDX-License-Identifier: Apache-2.0
#include "servetune/explanation.hpp"

#include "candidates.hpp"
#include "contrast.hpp"
#include "model_cache.hpp"
#include "refused_levels.hpp"
#include "base/probability.hpp"
#include "servetune/search_space.hpp"
#include "servetune/error.hpp"
#include "shown_levels.hpp"
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

}  // namespace

/// Weighted configurations.
struct Explanation::Contrast {
    std::vector<EncodedPoint> points{};
    std::vector<std::vector<PriorBelief>> beliefs{};
    std::vector<double> weights{};
    std::size_t terms = 0;
};

Explanation::Explanation(const Problem& problem, std::span<const Trial> trials,
                         const Bayesian& bayesian, const Beliefs& beliefs)
    : problem_(problem),
      trials_(search_history(problem, trials)),
      bayesian_(bayesian),
      given_beliefs_(beliefs),
      beliefs_(beliefs.fitted_to(trials_, problem.decision)),
      geometry_(std::make_unique<const LevelGeometry>(problem.space)) {}

Explanation::~Explanation() = default;

/// The history as it was when a trial was asked: what was told later was under way.
std::vector<Trial> Explanation::before(const Trial& asked) const {
    std::vector<Trial> result;
    for (const Trial& trial : trials_) {
        if (trial.id >= asked.id) continue;
        result.push_back(trial);
        if (trial.told_at && asked.asked_at > 0 && *trial.told_at > asked.asked_at)
            result.back().outcome = {};
    }
    return result;
}

TrialExplanation Explanation::trial(std::uint64_t id) const {
    const auto found = std::find_if(trials_.begin(), trials_.end(),
                                    [&](const Trial& trial) { return trial.id == id; });
    if (found == trials_.end())
        throw UsageError("there is no trial " + std::to_string(id) + " of the search; there are " +
                         std::to_string(trials_.size()));
    TrialExplanation result;
    result.trial = &*found;
    const Standings alone(std::span<const Trial>(&*found, 1), problem_.objective,
                          problem_.decision);
    if (const Standing& standing = alone.all().front(); standing.measured() > 0)
        result.measured = standing.estimate().mean;

    const std::vector<Trial> history = before(*found);
    for (const Trial& trial : history) result.told_before += trial.told() ? 1 : 0;
    if (result.told_before == 0) return result;
    const Standings standings(history, problem_.objective, problem_.decision,
                              problem_.space.default_configuration());
    const PendingAwareModel model = bayesian_.learned(problem_, standings, *geometry_);
    const auto figure = [&](double standardised) {
        return standings.scale().figure(model.scale().value(standardised));
    };
    const Beliefs believed = given_beliefs_.fitted_to(history, problem_.decision);
    const CandidateScore score =
        model.scores({geometry_->encode(found->configuration)}, {believed.of(found->configuration)})
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
    expected.seconds = TrialCost(*geometry_, evidence, bayesian_.options().learning.search)
                           .seconds(geometry_->encode(found->configuration));
    return result;
}

std::optional<PendingAwareModel> Explanation::model() const {
    const Standings standings(trials_, problem_.objective, problem_.decision,
                              problem_.space.default_configuration());
    if (!EffectsFloor::of(problem_.space, standings).enough()) return std::nullopt;
    return learned_anew(problem_, standings, *geometry_, bayesian_.options(),
                        OutputScale::Tail::straight);
}

/// All of a small space, else an even draw, always the same one.
std::vector<Configuration> Explanation::sample() const {
    std::vector<Configuration> result;
    if (problem_.feasible.finite() && problem_.feasible.size() <= static_cast<double>(max_drawn)) {
        problem_.feasible.for_each([&](const Configuration& configuration) {
            return result.push_back(configuration), true;
        });
        return result;
    }
    Rng rng(fingerprint_of(Candidates::key_of(problem_)).bits);
    std::set<Configuration> drawn;
    for (std::size_t i = 0; i < 2 * max_drawn && drawn.size() < max_drawn; ++i)
        if (Configuration one = problem_.feasible.sample(rng); drawn.insert(one).second)
            result.push_back(std::move(one));
    return result;
}

/// Each configuration of the sample in several variants with weights that add to 0; only where all
/// of them are feasible. At most `most` of them.
Explanation::Contrast Explanation::contrast(const std::vector<Configuration>& sample,
                                            const Changes& changes, std::size_t most) const {
    Contrast result;
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
            Configuration variant = problem_.space.completed(values);
            if (!active_in(variant) || !problem_.space.feasible(variant)) break;
            variants.push_back(std::move(variant));
        }
        if (variants.size() < changes.size()) continue;
        ++result.terms;
        for (std::size_t i = 0; i < variants.size(); ++i) {
            result.points.push_back(geometry_->encode(variants[i]));
            result.beliefs.push_back(beliefs_.of(variants[i]));
            result.weights.push_back(changes[i].second);
        }
    }
    for (double& weight : result.weights) weight /= static_cast<double>(result.terms);
    return result;
}

/// Standardised: more is better.
double Explanation::mean(const PendingAwareModel& model, const Contrast& contrast) {
    const std::vector<Prediction> predictions =
        model.objective().mixed(contrast.points, model.believed(contrast.beliefs));
    double sum = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i)
        sum += contrast.weights[i] * predictions[i].mean;
    return sum;
}

Prediction Explanation::posterior(const PendingAwareModel& model, const Contrast& contrast) const {
    const auto count = static_cast<Eigen::Index>(contrast.weights.size());
    const Eigen::VectorXd weights =
        Eigen::Map<const Eigen::VectorXd>(contrast.weights.data(), count);
    return posterior_of(model, *geometry_, {contrast.points, contrast.beliefs, weights}).front();
}

std::vector<Effect> Explanation::effects() const {
    std::vector<Effect> result;
    std::vector<Prediction> found;
    const std::optional<PendingAwareModel> learned = model();
    if (!learned) return result;
    const Standings standings(trials_, problem_.objective, problem_.decision,
                              problem_.space.default_configuration());
    const RefusedLevels refused = refused_levels(problem_, standings);
    const std::vector<Configuration> drawn = refused.without(sample());
    for (const Parameter& parameter : problem_.space.parameters())
        for (const Value& level : explained_levels(parameter)) {
            if (level == parameter.default_value) continue;
            const Contrast pairs = contrast(drawn,
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
            if (result.back().refused.empty()) found.push_back(posterior(*learned, pairs));
        }
    auto of_next = found.begin();
    for (Effect& effect : result)
        if (effect.refused.empty()) effect.gain = as_gain(*learned, *of_next++, found.size());
    return result;
}

std::vector<Interaction> Explanation::interactions(const std::vector<Effect>& effects) const {
    std::vector<Interaction> result;
    const std::optional<PendingAwareModel> learned = model();
    if (!learned) return result;
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
    const Standings standings(trials_, problem_.objective, problem_.decision,
                              problem_.space.default_configuration());
    const RefusedLevels refused = refused_levels(problem_, standings);
    const std::vector<Configuration> drawn = refused.without(sample());
    struct Candidate {
        const Effect *a = nullptr, *b = nullptr;
        Contrast contrast{};
        double size = 0;
        std::size_t together = 0;
    };
    const auto usual = [&](const Effect& effect) -> const Value& {
        return problem_.space.at(effect.parameter).default_value;
    };
    std::vector<Candidate> candidates;
    std::size_t combinations = 0;  // that the strongest are chosen from
    for (std::size_t i = 0; i < looked_at.size(); ++i)
        for (std::size_t j = i + 1; j < looked_at.size(); ++j) {
            std::optional<Candidate> strongest;
            for (const Effect* a : looked_at[i])
                for (const Effect* b : looked_at[j]) {
                    const std::vector<ShownLevel> both{
                        shown_level(problem_.space.at(a->parameter), a->level),
                        shown_level(problem_.space.at(b->parameter), b->level)};
                    const std::size_t together = measured_with(learned->evidence(), both);
                    if (together < least_together || !refused.why(both).empty()) continue;
                    const Value& usual_a = usual(*a);
                    const Value& usual_b = usual(*b);
                    Contrast four =
                        contrast(drawn,
                                 {{{{a->parameter, a->level}, {b->parameter, b->level}}, 1.0},
                                  {{{a->parameter, a->level}, {b->parameter, usual_b}}, -1.0},
                                  {{{a->parameter, usual_a}, {b->parameter, b->level}}, -1.0},
                                  {{{a->parameter, usual_a}, {b->parameter, usual_b}}, 1.0}},
                                 most_fours);
                    if (four.terms == 0) continue;
                    ++combinations;
                    const double size = std::abs(mean(*learned, four));
                    if (!strongest || size > strongest->size)
                        strongest = Candidate{a, b, std::move(four), size, together};
                }
            if (strongest) candidates.push_back(std::move(*strongest));
        }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
    candidates.resize(std::min(candidates.size(), most_interactions));
    for (const Candidate& candidate : candidates)
        result.push_back({{candidate.a->parameter, candidate.b->parameter},
                          {candidate.a->level, candidate.b->level},
                          as_gain(*learned, posterior(*learned, candidate.contrast), combinations),
                          candidate.together});
    return result;
}

}  // namespace servetune
