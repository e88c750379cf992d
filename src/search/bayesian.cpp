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
    const auto count = [&](const auto& is) { return double(count_if(evidence, is)); };
    const double failed = count([](const ConfigurationEvidence& entry) { return !entry.works; });
    const double numbers =
        count([](const ConfigurationEvidence& entry) { return entry.measured(); });
    if (failed > failing_share * double(evidence.size())) return careful_chance;
    return numbers < enough_numbers ? first_chance : least_chance;
}

struct Choice {
    Configuration configuration;
    CandidateScore score;
};

/// A configuration whose load test was ended early for a best one that has failed since.
std::optional<Proposal> in_full(const Standings& standings) {
    const Standing* best = standings.best();
    for (const Standing& standing : standings.all()) {
        if (standing.trials.size() != 1) continue;  // once
        const Measurement* measurement = standing.trials.front()->measurement();
        if (measurement == nullptr || !measurement->validity.ended_early()) continue;
        const auto* found = entry_in(measurement->metrics, trial_had_to_reach);
        if (found == nullptr) continue;
        // As the load test printed it; means are without the machine's drift.
        const double missed =
            found->value * std::exp(-standings.drift().offset(double(standing.trials.front()->id)));
        if (best == nullptr || best->estimate().mean < missed)
            return Proposal{standing.configuration,
                            "again, in full: the best one that it was slower than is out"};
    }
    return std::nullopt;
}

/// In the order in which they were made, for at most three trials of ten.
std::vector<Configuration> untried_suggestions(const std::vector<Configuration>& suggestions,
                                               std::size_t trials,
                                               const std::set<Configuration>& seen) {
    std::vector<Configuration> result;
    std::set<Configuration> tried;
    for (const Configuration& one : suggestions)
        if (!seen.contains(one)) result.push_back(one);
        else tried.insert(one);
    if (10 * (tried.size() + 1) > 3 * (trials + 1)) result.clear();
    return result;
}

/// Keeps `most` of sorted choices, the best one that is likely enough to work among them.
void forget_all_but_the_best(std::vector<Choice>& choices, std::size_t most,
                             double least_log_works) {
    if (choices.size() <= most) return;
    const auto kept = choices.begin() + std::ptrdiff_t(most);
    const auto likely = find_if(
        choices, [&](const Choice& choice) { return choice.score.log_works >= least_log_works; });
    if (likely >= kept && likely != choices.end()) *(kept - 1) = *likely;
    choices.erase(kept, choices.end());
}

/// The entry whose measurement once more is expected to change most who is best (knowledge gradient
/// of one more sample; Frazier, Powell, Dayanik 2009): ln of s h(-|d| / s), s^2 what one
/// measurement takes from its variance, d its distance to the best other.
std::optional<std::pair<std::size_t, double>> best_replicate(const PendingAwareModel& model) {
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

/// What the models of a history say to do next.
class ModelledAsk {
public:
    /// All must outlive it; `seen`: the configurations of the history; `trials`: of the budget.
    ModelledAsk(const Problem& problem, std::span<const Trial> history,
                const std::set<Configuration>& seen, const Standings& standings,
                const Beliefs& beliefs, std::size_t trials, std::uint64_t seed, ModelCache& kept)
        : problem_(problem),
          history_(history),
          seen_(seen),
          beliefs_(beliefs),
          searched_(search_trials(problem, trials, rounds_needed(problem, standings))),
          seed_(seed),
          kept_(kept),
          all_(kept.candidates(problem, beliefs, seed)),
          model_(kept.learned(problem, standings, beliefs, seed)) {}

    [[nodiscard]] Answer answer(std::vector<Configuration> suggestions,
                                std::optional<double> serves_seconds) const {
        if (history_.size() >= last_ones() && history_.size() < searched_)
            if (auto proposal = smaller_command()) return *proposal;
        if (serves_seconds)
            if (auto answer = not_worth_it(*serves_seconds)) return *answer;
        const bool explore = history_.size() % explore_every == explore_every - 1;
        const std::optional<Choice> suggested = best_suggestion(std::move(suggestions));
        if (!suggested)
            if (auto proposal = far_away()) return *proposal;
        const std::optional<Choice> choice = suggested ? suggested : best_new(explore);
        if (!choice) return Finished{"no new configuration is left"};
        const bool repeats_enough =
            double(history_.size() - seen_.size()) >= most_repeated * double(history_.size());
        if (problem_.replicates_inform && !explore && !suggested && !repeats_enough)
            if (const auto replicate = best_replicate(model_)) {
                if (replicate->second > choice->score.total())
                    return Proposal{model_.evidence()[replicate->first].configuration,
                                    "again: whether it is the best is worth more than a new one"};
            }
        const auto rounded = [](double value) { return text_of(std::round(value * 100) / 100); };
        return Proposal{
            choice->configuration,
            std::string(suggested ? "suggested"
                        : explore ? "to learn"
                                  : "expected to gain") +
                (model_.tradeoff() != nullptr ? ": ln EI of the front " : ": ln gain ") +
                rounded(choice->score.log_improvement) + ", ln P(works) " +
                rounded(choice->score.log_works) + ", ln P(limits) " +
                rounded(choice->score.log_limits)};
    }

private:
    /// From so many trials on the search is over but for the smaller command.
    [[nodiscard]] std::size_t last_ones() const {
        constexpr std::size_t attempts = 2;  // one may be under way or fail
        return searched_ - std::min(searched_, attempts);
    }

    /// What is farthest from all that was tried, by its chance to work, at every other new
    /// configuration once `patience` of them in a row gained less than `min_gain`. A model that has
    /// seen only a plateau believes in nothing else, and its most uncertain candidates lie beside
    /// it.
    [[nodiscard]] std::optional<Proposal> far_away() const {
        if (problem_.objective.several() || !model_.incumbent()) return std::nullopt;
        const double sign = problem_.objective.leading().direction == Direction::maximize ? 1 : -1;
        std::size_t without_gain = 0;
        std::optional<double> best;  // ln of it, more is better
        std::vector<EncodedPoint> tried;
        for (const ConfigurationEvidence& entry : model_.evidence()) {
            tried.push_back(entry.point);
            ++without_gain;
            if (!entry.measured() || !entry.passes) continue;
            const double value = sign * std::log(entry.means.front());
            if (best && value <= *best + std::log1p(problem_.decision.min_gain)) continue;
            best = value;
            without_gain = 0;
        }
        if (without_gain < patience || (without_gain - patience) % 2 != 0) return std::nullopt;
        // Far away the model knows little: what is not likely to work is left to the gains.
        const double least = least_chance_of(model_);
        const Eigen::VectorXf& log_chances = kept_.ranking(least).log_chances();
        std::vector<double> chances(std::size_t(log_chances.size()));
        std::transform(log_chances.begin(), log_chances.end(), chances.begin(),
                       [&](float log_chance) {
                           const double chance = std::exp(double(log_chance));
                           return chance < std::max(first_chance, least) ? 0 : chance;
                       });
        if (all_of(chances, [](double chance) { return chance <= 0; })) return std::nullopt;
        Configuration configuration =
            all_.configuration(farthest(all_.geometry(), all_.pool(), tried, chances, seed_));
        if (seen_.contains(configuration)) return std::nullopt;
        return Proposal{std::move(configuration), "far from all that was tried: the last " +
                                                      std::to_string(without_gain) +
                                                      " configurations gained too little"};
    }

    /// The end of a search whose best further trial, of a new configuration or of one again, gains
    /// less serving time than it takes: E[gain of ln y] serves_seconds < E[seconds] (the rule of
    /// Xie et al., Cost-aware Stopping for Bayesian Optimization, arXiv 2507.12453, 2025, with
    /// seconds for both). Nothing: another trial is worth it, or no trial has told what it took.
    [[nodiscard]] std::optional<Answer> not_worth_it(double serves_seconds) const {
        if (problem_.objective.several() || !model_.incumbent()) return std::nullopt;
        const TrialCost cost(all_.geometry(), model_.evidence());
        double gained = 0;
        double taken = 0;
        bool pays = false;
        const auto look = [&](double log_gain, const EncodedPoint& point) {
            const std::optional<double> seconds = cost.seconds(point);
            const double serving = std::exp(log_gain) * model_.scale().spread() * serves_seconds;
            pays = pays || !seconds || serving >= *seconds;
            if (!seconds || (taken > 0 && serving / *seconds <= gained / taken)) return;
            gained = serving;
            taken = *seconds;
        };
        if (const auto choice = best_new(false))
            look(choice->score.total(), all_.geometry().encode(choice->configuration));
        if (const auto replicate = best_replicate(model_); replicate && problem_.replicates_inform)
            look(replicate->second, model_.evidence()[replicate->first].point);
        if (pays || taken <= 0) return std::nullopt;
        if (any_of(history_, [](const Trial& trial) { return !trial.told(); })) return Waiting{};

        const auto dropped = [](const Trial& trial) {
            return trial.purpose == Purpose::smaller_command;
        };
        constexpr std::ptrdiff_t attempts =
            3;  // what an attempt loses teaches the next one which setting to keep
        if (count_if(history_, dropped) < attempts)
            if (auto proposal = smaller_command()) return *proposal;
        return Finished{"not worth another trial: the best one is expected to gain " +
                        seconds_text(gained) + " in " +
                        significant_text(serves_seconds / 86400, 3) +
                        " days of serving, and to take " + seconds_text(taken)};
    }

    /// What is left of the best posterior mean that passes once settings are dropped from it that
    /// do nothing, as far as the models believe: the one that costs least first, as long as it is
    /// well possible (one standard deviation) that all together cost less than `min_gain`. Once, as
    /// the first of the last trials. It is recommended if it then loses too little and is known
    /// about as well as the best (`recommend`). Nothing where it was measured already.
    [[nodiscard]] std::optional<Proposal> smaller_command() const {
        if (model_.tradeoff() != nullptr || !model_.incumbent()) return std::nullopt;
        std::set<Configuration> before;
        for (std::size_t i = 0; i < history_.size(); ++i)
            if (before.insert(history_[i].configuration).second && i >= last_ones())
                return std::nullopt;
        const Configuration& best = model_.evidence()[*model_.incumbent()].configuration;
        const double best_mean = model_.at_evidence()[*model_.incumbent()].mean;
        const double most_loss = std::log1p(problem_.decision.min_gain) / model_.scale().spread();
        Configuration smaller = best;
        std::string dropped{};
        while (true) {
            std::vector<Configuration> reductions;
            std::vector<std::string> names;
            for (const auto& [name, value] : smaller.entries()) {
                const Value& usual = problem_.space.at(name).default_value;
                if (value == usual) continue;
                Configuration one = problem_.space.changed(smaller, {{name, usual}});
                if (!is_reduction_of(problem_.space, one, best) ||
                    !problem_.space.violations(one).empty())
                    continue;
                reductions.push_back(std::move(one));
                names.push_back(name);
            }
            const std::vector<Choice> choices = choices_of(std::move(reductions));
            std::optional<std::size_t> least;
            for (std::size_t i = 0; i < choices.size(); ++i) {
                const CandidateScore& score = choices[i].score;
                const double sure = std::log(0.5);
                const double loss =
                    best_mean - score.objective.mean - std::sqrt(score.objective.variance);
                if (score.log_works < sure || score.log_limits < sure || loss > most_loss) continue;
                if (!least || score.objective.mean > choices[*least].score.objective.mean)
                    least = i;
            }
            if (!least) break;
            smaller = choices[*least].configuration;
            dropped += (dropped.empty() ? "" : ", ") + names[*least];
        }
        if (smaller == best || seen_.contains(smaller)) return std::nullopt;
        return Proposal{std::move(smaller),
                        "the best so far without what seems to do nothing: " + dropped,
                        Purpose::smaller_command};
    }

    [[nodiscard]] std::optional<Choice> best_new(bool explore) const {
        const double least = least_chance_of(model_);
        const CandidateRanking& ranking = kept_.ranking(least);
        const std::size_t most = rescored + seen_.size();
        const std::vector<std::size_t> order = model_.tradeoff() == nullptr
                                                   ? ranking.best(model_, most, explore)
                                                   : highest(ranking.scores(model_, explore), most);
        std::vector<Configuration> configurations;
        std::vector<EncodedPoint> points;
        std::vector<std::vector<PriorBelief>> beliefs;
        for (const std::size_t i : order) {
            Configuration configuration = all_.configuration(i);
            if (seen_.contains(configuration)) continue;
            configurations.push_back(std::move(configuration));
            points.push_back(all_.pool().point(i));
            beliefs.push_back(all_.beliefs(i));
        }
        const std::vector<CandidateScore> scores = model_.scores(points, beliefs);
        std::vector<Choice> choices;
        for (std::size_t i = 0; i < scores.size(); ++i)
            choices.push_back({std::move(configurations[i]), scores[i]});
        if (explore && !choices.empty()) return choices.front();
        if (!all_.listed()) climb(choices);
        const auto unlikely = [&](const Choice& one) {
            return one.score.log_works < std::log(least);
        };
        if (!all_of(choices, unlikely)) std::erase_if(choices, unlikely);  // the last resort only
        const auto best =
            std::max_element(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
                return a.score.total() < b.score.total() ||
                       (a.score.total() == b.score.total() && b.configuration < a.configuration);
            });
        return best == choices.end() ? std::nullopt : std::optional<Choice>(*best);
    }

    [[nodiscard]] std::vector<Choice> choices_of(std::vector<Configuration> configurations) const {
        std::vector<EncodedPoint> points;
        std::vector<std::vector<PriorBelief>> beliefs;
        for (const Configuration& one : configurations) {
            points.push_back(all_.geometry().encode(one));
            beliefs.push_back(beliefs_.of(one));
        }
        const std::vector<CandidateScore> scores = model_.scores(points, beliefs);
        std::vector<Choice> result;
        for (std::size_t i = 0; i < scores.size(); ++i)
            result.push_back({std::move(configurations[i]), scores[i]});
        return result;
    }

    /// The best of those that may work, unless the best so far is better by two standard
    /// deviations. With several goals that is never sure: what is worse in one may be better in
    /// another.
    [[nodiscard]] std::optional<Choice> best_suggestion(
        std::vector<Configuration> suggestions) const {
        const auto incumbent = model_.incumbent();
        const bool one_goal = model_.tradeoff() == nullptr;
        std::optional<Choice> best;
        for (Choice& choice : choices_of(std::move(suggestions))) {
            const Prediction& objective = choice.score.objective;
            if (choice.score.log_works < std::log(least_chance)) continue;
            if (one_goal && incumbent &&
                objective.mean + 2 * std::sqrt(objective.variance) <
                    model_.at_evidence()[*incumbent].mean)
                continue;
            if (!best || choice.score.total() > best->score.total()) best = std::move(choice);
        }
        return best;
    }

    /// Of a space that was only sampled: steps of one parameter from the best of the sample and
    /// from the incumbent, as long as they gain; all neighbours of all places in one product.
    void climb(std::vector<Choice>& choices) const {
        const std::size_t places =
            model_.evidence().size() > many_observations ? places_of_many : places_of_few;
        constexpr int sweeps = 12;
        const auto better = [](const Choice& a, const Choice& b) {
            return a.score.total() > b.score.total() ||
                   (a.score.total() == b.score.total() && a.configuration < b.configuration);
        };
        std::set<std::uint64_t> scored;  // fingerprints: a configuration of 50 parameters has 5 kB
        const auto is_new = [&](const Configuration& one) {
            return scored.insert(one.fingerprint().bits).second;
        };
        for (const Configuration& configuration : seen_) is_new(configuration);
        std::set<Configuration> expanded;
        for (const Choice& choice : choices) is_new(choice.configuration);
        const double least = std::log(least_chance_of(model_));
        for (int sweep = 0; sweep < sweeps; ++sweep) {
            sort(choices, better);
            forget_all_but_the_best(choices, std::max(places, rescored), least);
            std::vector<Configuration> from;
            if (const auto incumbent = model_.incumbent(); sweep == 0 && incumbent)
                from.push_back(model_.evidence()[*incumbent].configuration);
            for (std::size_t i = 0; i < std::min(places, choices.size()); ++i)
                from.push_back(choices[i].configuration);
            std::vector<Configuration> fresh;
            for (const Configuration& place : from) {
                if (!expanded.insert(place).second) continue;
                for (Configuration& neighbour : neighbours(problem_.space, place))
                    if (is_new(neighbour)) fresh.push_back(std::move(neighbour));
            }
            if (fresh.empty()) return;
            std::vector<Choice> found = choices_of(std::move(fresh));
            std::move(found.begin(), found.end(), std::back_inserter(choices));
        }
    }

    const Problem& problem_;
    std::span<const Trial> history_;
    const std::set<Configuration>& seen_;
    const Beliefs& beliefs_;
    std::size_t searched_;  ///< trials that the search may take
    std::uint64_t seed_;
    ModelCache& kept_;
    const Candidates& all_;
    const PendingAwareModel model_;
};

}  // namespace

/// The strategy itself, with the models that it keeps from ask to ask: they change its speed only.
class Bayesian::Search {
public:
    explicit Search(Options options) : given_(std::move(options)) {
        check_options("bayesian", given_.why_invalid());
    }
    [[nodiscard]] const Options& options() const { return given_; }
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history);

private:
    const Options given_;
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
    const Standings standings = problem.standings(history);
    Beliefs beliefs = given_.beliefs.fitted_to(history, problem.decision);
    const std::size_t by_knowledge = FirstTrials::of_knowledge(beliefs, problem.space);
    std::set<std::size_t> refuted;
    for (const RejectedPrior& one : rejected_priors(beliefs, problem, standings))
        refuted.insert(one.source);
    beliefs = beliefs.without(refuted);
    const std::size_t trials = given_.trials.value_or(problem.trials.value_or(Budget{}.trials));
    const std::uint64_t seed = given_.seed.value_or(problem.seed);
    const Candidates& all = kept_.candidates(problem, beliefs, seed);
    std::set<Configuration> seen;
    for (const Trial& trial : history) seen.insert(trial.configuration);
    if (!seen.contains(problem.space.default_configuration()))
        return Proposal{problem.space.default_configuration(), "the default"};

    const bool used_up =
        problem.feasible.finite() && double(seen.size()) >= problem.feasible.size();
    if (used_up)
        return Finished{"all " + text_of(problem.feasible.size()) + " configurations are measured"};
    std::vector<Configuration> suggestions;
    if (given_.suggestions != nullptr)
        suggestions = untried_suggestions(*given_.suggestions, history.size(), seen);
    if (seen.size() < start_trials(all.geometry().dimensions(), trials) + by_knowledge) {
        const FirstTrials first(problem, all,
                                evidence_of(problem, standings, all.geometry(), beliefs), beliefs,
                                by_knowledge, trials, seed);
        if (auto proposal = first.next(suggestions)) return *proposal;
    }

    if (auto proposal = in_full(standings)) return *proposal;
    return ModelledAsk(problem, history, seen, standings, beliefs, trials, seed, kept_)
        .answer(std::move(suggestions), given_.serves_seconds);
}

}  // namespace servetune
