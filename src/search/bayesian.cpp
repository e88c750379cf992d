// SPDX-License-Identifier: Apache-2.0
#include "servetune/bayesian.hpp"
#include "study/verdict.hpp"

#include "base/probability.hpp"
#include "first_trials.hpp"
#include "model_cache.hpp"
#include "rejected_priors.hpp"
#include "servetune/budget.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/search_space.hpp"
#include "start_design.hpp"
#include "study/confirmation.hpp"
#include "trial_cost.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace servetune {

namespace {

/// Share of a history that may be repeats. On a plateau, one of the best again is for ever worth
/// more than a new one: 55 to 62 % of the trials of three nights (benchmarks/night), which the
/// confirmation after the search repeats anyway. On twelve tables a quarter loses nothing.
constexpr double most_repeated = 0.25;

/// Chance to work; below, a configuration is tried only where nothing else is left.
constexpr double least_chance = 0.15;
/// The same until `enough_numbers` configurations gave one: a model of what works needs both kinds
/// before it may take risks.
constexpr double first_chance = 0.35;
constexpr double enough_numbers = 5;
/// The budget of risk: once more than `failing_share` of the configurations failed, only those are
/// tried whose chance to work is at least `careful_chance`, unless nothing else is left. At 60
/// trials of four tasks (16 fresh seeds) 7.4 instead of 11.0 failed, and the mean regret was 3.9
/// instead of 5.2 %; with a chance of 0.5 nothing changed, with 0.8 regret grew.
constexpr double careful_chance = 0.7;
constexpr double failing_share = 0.125;

/// One ask in so many learns where the model knows least.
constexpr std::size_t explore_every = 12;
/// Once so many new configurations in a row gained less than `Decision::min_gain`, every other one
/// is far from all that was tried. One goal only: with several, nearly every trial gains a little
/// in one of them.
constexpr std::size_t patience = 8;

constexpr std::size_t rescored = 256;  ///< of the ranking's best, scored by all experts in double
/// Of a space that is only sampled: from so many of the best at once steps of one parameter are
/// tried. A place of vLLM's whole space has some 190 neighbours, and each costs O(n^2): of more
/// than `many_observations` told configurations fewer places are enough.
constexpr std::size_t places_of_few = 8;
constexpr std::size_t places_of_many = 2;

/// Of working. Where more failed than the budget of risk allows, only what is as sure as a
/// configuration of which nothing is known.
double least_chance_of(const PendingAwareModel& model) {
    const std::vector<ConfigurationEvidence>& evidence = model.evidence();
    const auto count = [&](const auto& is) {
        return static_cast<double>(std::count_if(evidence.begin(), evidence.end(), is));
    };
    const double failed = count([](const ConfigurationEvidence& entry) { return !entry.works; });
    const double numbers =
        count([](const ConfigurationEvidence& entry) { return entry.measured(); });
    if (failed > failing_share * static_cast<double>(evidence.size())) return careful_chance;
    return numbers < enough_numbers ? first_chance : least_chance;
}

}  // namespace

/// The strategy itself, with the models that it keeps from ask to ask: they change its speed only.
class Bayesian::Search {
public:
    explicit Search(Options options) : given_(std::move(options)) {
        check_options("bayesian", given_.why_invalid());
    }

    [[nodiscard]] const Options& options() const { return given_; }
    /// From so many trials on the search is over but for the smaller command.
    [[nodiscard]] std::size_t last_ones(const Problem& problem) const {
        constexpr std::size_t attempts = 2;  // one may be under way or fail
        const std::size_t searched = search_trials(problem, trials_);
        return searched - std::min(searched, attempts);
    }
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history);

private:
    struct Choice {
        Configuration configuration;
        CandidateScore score;
    };
    [[nodiscard]] static std::optional<Proposal> in_full(const Standings& standings);
    [[nodiscard]] std::vector<Configuration> untried_suggestions(
        std::span<const Trial> history, const std::set<Configuration>& seen) const;
    [[nodiscard]] std::optional<Choice> best_new(const PendingAwareModel& model, const Problem& problem,
                                                 const Candidates& candidates,
                                                 const std::set<Configuration>& seen, bool explore);
    static void forget_all_but_the_best(std::vector<Choice>& choices, std::size_t most,
                                        double least_log_works);
    void climb(const PendingAwareModel& model, const Problem& problem, const Candidates& candidates,
               const std::set<Configuration>& seen, std::vector<Choice>& choices) const;
    [[nodiscard]] std::vector<Choice> choices_of(const PendingAwareModel& model, const Candidates& candidates,
                                                 std::vector<Configuration> configurations) const;
    [[nodiscard]] std::optional<Choice> best_suggestion(
        const PendingAwareModel& model, const Candidates& candidates,
        std::vector<Configuration> suggestions) const;
    [[nodiscard]] std::optional<Proposal> far_away(const PendingAwareModel& model,
                                                   const Problem& problem,
                                                   const Candidates& candidates,
                                                   const std::set<Configuration>& seen);
    [[nodiscard]] std::optional<Proposal> smaller_command(
        const PendingAwareModel& model, const Problem& problem, const Candidates& candidates,
        std::span<const Trial> history, const std::set<Configuration>& seen) const;
    [[nodiscard]] static std::optional<std::pair<std::size_t, double>> best_replicate(
        const PendingAwareModel& model);
    [[nodiscard]] std::optional<Answer> not_worth_it(const PendingAwareModel& model, const Problem& problem,
                                                     const Candidates& candidates,
                                                     std::span<const Trial> history,
                                                     const std::set<Configuration>& seen,
                                                     double serves_seconds);

    const Options given_;
    // Those of the ask.
    Beliefs beliefs_{};       ///< fitted to the history
    std::size_t trials_ = 0;  ///< of the budget
    std::uint64_t seed_ = 0;
    ModelCache kept_{};
};

Bayesian::Bayesian(Options options) : search_(std::make_unique<Search>(std::move(options))) {}
Bayesian::Bayesian(Bayesian&& other) noexcept = default;
Bayesian& Bayesian::operator=(Bayesian&& other) noexcept = default;
Bayesian::~Bayesian() = default;

const BayesianOptions& Bayesian::options() const { return search_->options(); }
Answer Bayesian::ask(const Problem& problem, std::span<const Trial> history, Rng& /*rng*/) const {
    return search_->ask(problem, history);
}

std::string BayesianOptions::why_invalid() const {
    return OptionCheck()
        .at_least("trials", trials.value_or(1), 1)
        .seconds("serves_seconds", serves_seconds.value_or(1))
        .text();
}

Answer Bayesian::Search::ask(const Problem& problem, std::span<const Trial> history) {
    const Standings standings(history, problem.objective, problem.decision,
                              problem.space.default_configuration());
    beliefs_ = given_.beliefs.fitted_to(history, problem.decision);
    const std::size_t by_knowledge = FirstTrials::of_knowledge(beliefs_, problem.space);
    std::set<std::size_t> refuted;
    for (const RejectedPrior& one : rejected_priors(beliefs_, problem, standings))
        refuted.insert(one.source);
    beliefs_ = beliefs_.without(refuted);
    trials_ = given_.trials.value_or(problem.trials.value_or(Budget{}.trials));
    seed_ = given_.seed.value_or(problem.seed);
    const Candidates& all = kept_.candidates(problem, beliefs_, seed_);
    std::set<Configuration> seen;
    for (const Trial& trial : history) seen.insert(trial.configuration);
    if (!seen.contains(problem.space.default_configuration()))
        return Proposal{problem.space.default_configuration(), "the default"};

    const bool used_up =
        problem.feasible.finite() && static_cast<double>(seen.size()) >= problem.feasible.size();
    if (used_up)
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    std::vector<Configuration> suggestions = untried_suggestions(history, seen);
    if (seen.size() < start_trials(all.geometry().dimensions(), trials_) + by_knowledge) {
        const FirstTrials first(problem, all,
                                evidence_of(problem, standings, all.geometry(), beliefs_),
                                beliefs_, trials_, seed_);
        if (auto proposal = first.next(suggestions)) return *proposal;
    }

    if (auto proposal = in_full(standings)) return *proposal;
    const PendingAwareModel model = kept_.learned(problem, standings, beliefs_, seed_);
    if (history.size() >= last_ones(problem) && history.size() < search_trials(problem, trials_))
        if (auto proposal = smaller_command(model, problem, all, history, seen)) return *proposal;
    if (const auto serves_seconds = given_.serves_seconds)
        if (auto answer = not_worth_it(model, problem, all, history, seen, *serves_seconds))
            return *answer;
    const bool explore = history.size() % explore_every == explore_every - 1;
    const std::optional<Choice> suggested = best_suggestion(model, all, std::move(suggestions));
    if (!suggested)
        if (auto proposal = far_away(model, problem, all, seen)) return *proposal;
    const std::optional<Choice> choice =
        suggested ? suggested : best_new(model, problem, all, seen, explore);
    if (!choice) return Finished{"no new configuration is left"};
    const bool repeats_enough = static_cast<double>(history.size() - seen.size()) >=
                                most_repeated * static_cast<double>(history.size());
    if (problem.replicates_inform && !explore && !suggested && !repeats_enough)
        if (const auto replicate = best_replicate(model)) {
            if (replicate->second > choice->score.total())
                return Proposal{model.evidence()[replicate->first].configuration,
                                "again: whether it is the best is worth more than a new one"};
        }
    const auto rounded = [](double value) { return text_of(std::round(value * 100) / 100); };
    return Proposal{choice->configuration,
                    std::string(suggested ? "suggested"
                                : explore ? "to learn"
                                          : "expected to gain") +
                        (model.tradeoff() != nullptr ? ": ln EI of the front " : ": ln gain ") +
                        rounded(choice->score.log_improvement) + ", ln P(works) " +
                        rounded(choice->score.log_works) + ", ln P(limits) " +
                        rounded(choice->score.log_limits)};
}

/// A configuration whose load test was ended early for a best one that has failed since.
std::optional<Proposal> Bayesian::Search::in_full(const Standings& standings) {
    const Standing* best = standings.best();
    for (const Standing& standing : standings.all()) {
        if (standing.trials.size() != 1) continue;  // once
        const Measurement* measurement = standing.trials.front()->measurement();
        if (measurement == nullptr || !measurement->validity.ended_early()) continue;
        const auto found = measurement->metrics.find(trial_had_to_reach);
        if (found == measurement->metrics.end()) continue;
        // As the load test printed it; means are without the machine's drift.
        const double missed =
            found->second.value *
            std::exp(-standings.drift().offset(static_cast<double>(standing.trials.front()->id)));
        if (best == nullptr || best->estimate().mean < missed)
            return Proposal{standing.configuration,
                            "again, in full: the best one that it was slower than is out"};
    }
    return std::nullopt;
}

/// In the order in which they were made, for at most three trials of ten.
std::vector<Configuration> Bayesian::Search::untried_suggestions(
    std::span<const Trial> history, const std::set<Configuration>& seen) const {
    std::vector<Configuration> result;
    if (given_.suggestions == nullptr) return result;
    std::set<Configuration> tried;
    for (const Configuration& one : *given_.suggestions)
        if (!seen.contains(one)) result.push_back(one);
        else tried.insert(one);
    if (10 * (tried.size() + 1) > 3 * (history.size() + 1)) result.clear();
    return result;
}

/// What is farthest from all that was tried, by its chance to work, at every other new
/// configuration once `patience` of them in a row gained less than `min_gain`. A model that has
/// seen only a plateau believes in nothing else, and its most uncertain candidates lie beside it.
std::optional<Proposal> Bayesian::Search::far_away(const PendingAwareModel& model,
                                                   const Problem& problem, const Candidates& all,
                                                   const std::set<Configuration>& seen) {
    if (problem.objective.several() || !model.incumbent()) return std::nullopt;
    const double sign = problem.objective.leading().direction == Direction::maximize ? 1 : -1;
    std::size_t without_gain = 0;
    std::optional<double> best;  // ln of it, more is better
    std::vector<EncodedPoint> tried;
    for (const ConfigurationEvidence& entry : model.evidence()) {
        tried.push_back(entry.point);
        ++without_gain;
        if (!entry.measured() || !entry.passes) continue;
        const double value = sign * std::log(entry.means.front());
        if (best && value <= *best + std::log1p(problem.decision.min_gain)) continue;
        best = value;
        without_gain = 0;
    }
    if (without_gain < patience || (without_gain - patience) % 2 != 0) return std::nullopt;
    // Far away the model knows little: what is not likely to work is left to the gains.
    const double least = least_chance_of(model);
    const Eigen::VectorXf& log_chances = kept_.ranking(least).log_chances();
    std::vector<double> chances(static_cast<std::size_t>(log_chances.size()));
    std::transform(log_chances.begin(), log_chances.end(), chances.begin(), [&](float log_chance) {
        const double chance = std::exp(static_cast<double>(log_chance));
        return chance < std::max(first_chance, least) ? 0 : chance;
    });
    if (std::all_of(chances.begin(), chances.end(), [](double chance) { return chance <= 0; }))
        return std::nullopt;
    Configuration configuration =
        all.configuration(farthest(all.geometry(), all.pool(), tried, chances, seed_));
    if (seen.contains(configuration)) return std::nullopt;
    return Proposal{std::move(configuration), "far from all that was tried: the last " +
                                                  std::to_string(without_gain) +
                                                  " configurations gained too little"};
}

/// The end of a search whose best further trial, of a new configuration or of one again, gains less
/// serving time than it takes: E[gain of ln y] serves_seconds < E[seconds] (the rule of Xie et al.,
/// Cost-aware Stopping for Bayesian Optimization, arXiv 2507.12453, 2025, with seconds for both).
/// Nothing: another trial is worth it, or no trial has told what it took.
std::optional<Answer> Bayesian::Search::not_worth_it(const PendingAwareModel& model, const Problem& problem,
                                                     const Candidates& all,
                                                     std::span<const Trial> history,
                                                     const std::set<Configuration>& seen,
                                                     double serves_seconds) {
    if (problem.objective.several() || !model.incumbent()) return std::nullopt;
    const TrialCost cost(all.geometry(), model.evidence());
    double gained = 0;
    double taken = 0;
    bool pays = false;
    const auto look = [&](double log_gain, const EncodedPoint& point) {
        const std::optional<double> seconds = cost.seconds(point);
        const double serving = std::exp(log_gain) * model.scale().spread() * serves_seconds;
        pays = pays || !seconds || serving >= *seconds;
        if (!seconds || (taken > 0 && serving / *seconds <= gained / taken)) return;
        gained = serving;
        taken = *seconds;
    };
    if (const auto choice = best_new(model, problem, all, seen, false))
        look(choice->score.total(), all.geometry().encode(choice->configuration));
    if (const auto replicate = best_replicate(model); replicate && problem.replicates_inform)
        look(replicate->second, model.evidence()[replicate->first].point);
    if (pays || taken <= 0) return std::nullopt;
    if (std::any_of(history.begin(), history.end(),
                    [](const Trial& trial) { return !trial.told(); }))
        return Waiting{};

    const auto dropped = [](const Trial& trial) {
        return trial.purpose == Purpose::smaller_command;
    };
    constexpr std::ptrdiff_t attempts =
        3;  // what an attempt loses teaches the next one which setting to keep
    if (std::count_if(history.begin(), history.end(), dropped) < attempts)
        if (auto proposal = smaller_command(model, problem, all, history, seen)) return *proposal;
    return Finished{"not worth another trial: the best one is expected to gain " +
                    seconds_text(gained) + " in " + significant_text(serves_seconds / 86400, 3) +
                    " days of serving, and to take " + seconds_text(taken)};
}

/// What is left of the best posterior mean that passes once settings are dropped from it that do
/// nothing, as far as the models believe: the one that costs least first, as long as it is well
/// possible (one standard deviation) that all together cost less than `min_gain`. Once, as the
/// first of the last trials. It is recommended if it then loses too little and is known about as
/// well as the best (`recommend`). Nothing where it was measured already.
std::optional<Proposal> Bayesian::Search::smaller_command(
    const PendingAwareModel& model, const Problem& problem, const Candidates& all,
    std::span<const Trial> history, const std::set<Configuration>& seen) const {
    if (model.tradeoff() != nullptr || !model.incumbent()) return std::nullopt;
    std::set<Configuration> before;
    for (std::size_t i = 0; i < history.size(); ++i)
        if (before.insert(history[i].configuration).second && i >= last_ones(problem))
            return std::nullopt;
    const Configuration& best = model.evidence()[*model.incumbent()].configuration;
    const double best_mean = model.at_evidence()[*model.incumbent()].mean;
    const double most_loss = std::log1p(problem.decision.min_gain) / model.scale().spread();
    Configuration smaller = best;
    std::string dropped{};
    while (true) {
        std::vector<Configuration> reductions;
        std::vector<std::string> names;
        for (const auto& [name, value] : smaller.entries()) {
            const Value& usual = problem.space.at(name).default_value;
            if (value == usual) continue;
            Configuration one = problem.space.changed(smaller, {{name, usual}});
            if (!is_reduction_of(problem.space, one, best) ||
                !problem.space.violations(one).empty())
                continue;
            reductions.push_back(std::move(one));
            names.push_back(name);
        }
        const std::vector<Choice> choices = choices_of(model, all, std::move(reductions));
        std::optional<std::size_t> least;
        for (std::size_t i = 0; i < choices.size(); ++i) {
            const CandidateScore& score = choices[i].score;
            const double sure = std::log(0.5);
            const double loss =
                best_mean - score.objective.mean - std::sqrt(score.objective.variance);
            if (score.log_works < sure || score.log_limits < sure || loss > most_loss) continue;
            if (!least || score.objective.mean > choices[*least].score.objective.mean) least = i;
        }
        if (!least) break;
        smaller = choices[*least].configuration;
        dropped += (dropped.empty() ? "" : ", ") + names[*least];
    }
    if (smaller == best || seen.contains(smaller)) return std::nullopt;
    return Proposal{std::move(smaller),
                    "the best so far without what seems to do nothing: " + dropped,
                    Purpose::smaller_command};
}

std::optional<Bayesian::Search::Choice> Bayesian::Search::best_new(
    const PendingAwareModel& model, const Problem& problem, const Candidates& all,
    const std::set<Configuration>& seen, bool explore) {
    const double least = least_chance_of(model);
    const CandidateRanking& ranking = kept_.ranking(least);
    const std::size_t most = rescored + seen.size();
    const std::vector<std::size_t> order = model.tradeoff() == nullptr
                                               ? ranking.best(model, most, explore)
                                               : highest(ranking.scores(model, explore), most);
    std::vector<Configuration> configurations;
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const std::size_t i : order) {
        Configuration configuration = all.configuration(i);
        if (seen.contains(configuration)) continue;
        configurations.push_back(std::move(configuration));
        points.push_back(all.pool().point(i));
        beliefs.push_back(all.beliefs(i));
    }
    const std::vector<CandidateScore> scores = model.scores(points, beliefs);
    std::vector<Choice> choices;
    for (std::size_t i = 0; i < scores.size(); ++i)
        choices.push_back({std::move(configurations[i]), scores[i]});
    if (explore && !choices.empty()) return choices.front();
    if (!all.listed()) climb(model, problem, all, seen, choices);
    const auto unlikely = [&](const Choice& one) {
        return one.score.log_works < std::log(least);
    };
    if (!std::all_of(choices.begin(), choices.end(), unlikely))
        std::erase_if(choices, unlikely);  // the last resort only
    const auto best =
        std::max_element(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
            return a.score.total() < b.score.total() ||
                   (a.score.total() == b.score.total() && b.configuration < a.configuration);
        });
    return best == choices.end() ? std::nullopt : std::optional<Choice>(*best);
}

std::vector<Bayesian::Search::Choice> Bayesian::Search::choices_of(
    const PendingAwareModel& model, const Candidates& all, std::vector<Configuration> configurations) const {
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const Configuration& one : configurations) {
        points.push_back(all.geometry().encode(one));
        beliefs.push_back(beliefs_.of(one));
    }
    const std::vector<CandidateScore> scores = model.scores(points, beliefs);
    std::vector<Choice> result;
    for (std::size_t i = 0; i < scores.size(); ++i)
        result.push_back({std::move(configurations[i]), scores[i]});
    return result;
}

/// The best of those that may work, unless the best so far is better by two standard deviations.
/// With several goals that is never sure: what is worse in one may be better in another.
std::optional<Bayesian::Search::Choice> Bayesian::Search::best_suggestion(
    const PendingAwareModel& model, const Candidates& all, std::vector<Configuration> suggestions) const {
    const auto incumbent = model.incumbent();
    const bool one_goal = model.tradeoff() == nullptr;
    std::optional<Choice> best;
    for (Choice& choice : choices_of(model, all, std::move(suggestions))) {
        const Prediction& objective = choice.score.objective;
        if (choice.score.log_works < std::log(least_chance)) continue;
        if (one_goal && incumbent &&
            objective.mean + 2 * std::sqrt(objective.variance) <
                model.at_evidence()[*incumbent].mean)
            continue;
        if (!best || choice.score.total() > best->score.total()) best = std::move(choice);
    }
    return best;
}

/// Keeps `most` of sorted choices, the best one that is likely enough to work among them.
void Bayesian::Search::forget_all_but_the_best(std::vector<Choice>& choices, std::size_t most,
                                               double least_log_works) {
    if (choices.size() <= most) return;
    const auto kept = choices.begin() + static_cast<std::ptrdiff_t>(most);
    const auto likely = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
        return choice.score.log_works >= least_log_works;
    });
    if (likely >= kept && likely != choices.end()) *(kept - 1) = *likely;
    choices.erase(kept, choices.end());
}

/// Of a space that was only sampled: steps of one parameter from the best of the sample and from
/// the incumbent, as long as they gain; all neighbours of all places in one product.
void Bayesian::Search::climb(const PendingAwareModel& model, const Problem& problem, const Candidates& all,
                             const std::set<Configuration>& seen,
                             std::vector<Choice>& choices) const {
    const std::size_t places =
        model.evidence().size() > many_observations ? places_of_many : places_of_few;
    constexpr int sweeps = 12;
    const auto better = [](const Choice& a, const Choice& b) {
        return a.score.total() > b.score.total() ||
               (a.score.total() == b.score.total() && a.configuration < b.configuration);
    };
    std::set<std::uint64_t> scored;  // fingerprints: a configuration of 50 parameters has 5 kB
    const auto is_new = [&](const Configuration& one) {
        return scored.insert(one.fingerprint().bits).second;
    };
    for (const Configuration& configuration : seen) is_new(configuration);
    std::set<Configuration> expanded;
    for (const Choice& choice : choices) is_new(choice.configuration);
    const double least = std::log(least_chance_of(model));
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        std::sort(choices.begin(), choices.end(), better);
        forget_all_but_the_best(choices, std::max(places, rescored), least);
        std::vector<Configuration> from;
        if (const auto incumbent = model.incumbent(); sweep == 0 && incumbent)
            from.push_back(model.evidence()[*incumbent].configuration);
        for (std::size_t i = 0; i < std::min(places, choices.size()); ++i)
            from.push_back(choices[i].configuration);
        std::vector<Configuration> fresh;
        for (const Configuration& place : from) {
            if (!expanded.insert(place).second) continue;
            for (Configuration& neighbour : neighbours(problem.space, place))
                if (is_new(neighbour)) fresh.push_back(std::move(neighbour));
        }
        if (fresh.empty()) return;
        std::vector<Choice> found = choices_of(model, all, std::move(fresh));
        std::move(found.begin(), found.end(), std::back_inserter(choices));
    }
}

/// The entry whose measurement once more is expected to change most who is best (knowledge gradient
/// of one more sample; Frazier, Powell, Dayanik 2009): ln of s h(-|d| / s), s^2 what one
/// measurement takes from its variance, d its distance to the best other.
std::optional<std::pair<std::size_t, double>> Bayesian::Search::best_replicate(
    const PendingAwareModel& model) {
    if (const Tradeoff* tradeoff = model.tradeoff())
        return tradeoff->best_replicate(model.evidence(), model.noise_variance());
    std::optional<std::pair<std::size_t, double>> result;
    if (!model.incumbent()) return result;
    for (std::size_t i = 0; i < model.evidence().size(); ++i) {
        if (!model.evidence()[i].passes || model.evidence()[i].pending) continue;
        double other = -std::numeric_limits<double>::infinity();
        for (std::size_t j = 0; j < model.evidence().size(); ++j)
            if (j != i && model.evidence()[j].passes)
                other = std::max(other, model.at_evidence()[j].mean);
        if (!std::isfinite(other)) continue;
        const Prediction& prediction = model.at_evidence()[i];
        const double taken =
            prediction.variance / std::sqrt(prediction.variance + model.noise_variance());
        const double value =
            std::log(taken) + log_improvement(-std::abs(prediction.mean - other) / taken);
        if (!result || value > result->second) result = {i, value};
    }
    return result;
}

}  // namespace servetune
