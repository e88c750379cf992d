// SPDX-License-Identifier: Apache-2.0
#include "servetune/bayesian.hpp"
#include "study/verdict.hpp"

#include "base/probability.hpp"
#include "first_trials.hpp"
#include "level_rows.hpp"
#include "model_cache.hpp"
#include "rejected_priors.hpp"
#include "servetune/budget.hpp"
#include "servetune/detail/base/number_text.hpp"
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

const std::string without_idle_settings = "the best so far without what seems to do nothing: ";

/// Share of a history that may be repeats. On a plateau, one of the best again is for ever worth
/// more than a new one: 55 to 62 % of the trials of three nights (benchmarks/night), which the
/// confirmation after the search repeats anyway. On twelve tables a quarter loses nothing.
constexpr double most_repeated = 0.25;

}  // namespace

/// The strategy itself, with the models that it keeps from ask to ask: they change its speed only.
class Bayesian::Search {
public:
    explicit Search(Options options) : given_(std::move(options)), options_(given_) {
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
    struct Models {
        PendingAwareModel learned;
        std::unique_ptr<TrialCost> cost{};  ///< null: a trial is a trial
        [[nodiscard]] std::vector<CandidateScore> scores(
            const std::vector<EncodedPoint>& points,
            const std::vector<std::vector<PriorBelief>>& beliefs) const;
    };
    [[nodiscard]] std::vector<std::size_t> promising(const Models& models,
                                                     const Candidates& candidates,
                                                     double least_chance, std::size_t most,
                                                     bool explore);
    [[nodiscard]] double least_chance_of(const PendingAwareModel& model) const;
    [[nodiscard]] std::optional<Choice> best_new(const Models& models, const Problem& problem,
                                                 const Candidates& candidates,
                                                 const std::set<Configuration>& seen, bool explore);
    static void forget_all_but_the_best(std::vector<Choice>& choices, std::size_t most,
                                        double least_log_works);
    void climb(const Models& models, const Problem& problem, const Candidates& candidates,
               const std::set<Configuration>& seen, std::vector<Choice>& choices) const;
    [[nodiscard]] std::vector<Choice> choices_of(const Models& models, const Candidates& candidates,
                                                 std::vector<Configuration> configurations) const;
    [[nodiscard]] std::optional<Choice> best_suggestion(
        const Models& models, const Candidates& candidates,
        std::vector<Configuration> suggestions) const;
    [[nodiscard]] std::optional<Proposal> far_away(const PendingAwareModel& model,
                                                   const Problem& problem,
                                                   const Candidates& candidates,
                                                   const std::set<Configuration>& seen);
    [[nodiscard]] std::optional<Proposal> smaller_command(
        const Models& models, const Problem& problem, const Candidates& candidates,
        std::span<const Trial> history, const std::set<Configuration>& seen) const;
    [[nodiscard]] static std::optional<std::pair<std::size_t, double>> best_replicate(
        const PendingAwareModel& model);
    [[nodiscard]] std::optional<Answer> not_worth_it(const Models& models, const Problem& problem,
                                                     const Candidates& candidates,
                                                     std::span<const Trial> history,
                                                     const std::set<Configuration>& seen,
                                                     double serves_seconds);

    const Options given_;
    // Those of the ask.
    Options options_;         ///< with beliefs that are fitted to the history
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

PendingAwareModel Bayesian::learned(const Problem& problem, const Standings& standings,
                                    const LevelGeometry& geometry) const {
    return learned_anew(problem, standings, geometry, options(), OutputScale::Tail::compressed);
}

Answer Bayesian::Search::ask(const Problem& problem, std::span<const Trial> history) {
    const Standings standings(history, problem.objective, problem.decision,
                              problem.space.default_configuration());
    options_.beliefs = given_.beliefs.fitted_to(history, problem.decision);
    const std::size_t by_knowledge = FirstTrials::of_knowledge(options_.beliefs, problem.space);
    std::set<std::size_t> refuted;
    for (const RejectedPrior& one : rejected_priors(options_.beliefs, problem, standings))
        refuted.insert(one.source);
    options_.beliefs = options_.beliefs.without(refuted);
    trials_ = given_.trials.value_or(problem.trials.value_or(Budget{}.trials));
    seed_ = given_.learning.seed.value_or(problem.seed);
    const Candidates& all = kept_.candidates(problem, options_);
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
                                evidence_of(problem, standings, all.geometry(), options_.beliefs),
                                options_, by_knowledge);
        if (auto proposal = first.next(suggestions)) return *proposal;
    }

    if (auto proposal = in_full(standings)) return *proposal;
    Models models{kept_.learned(problem, standings, options_)};
    const PendingAwareModel& model = models.learned;
    if (options_.per_second)
        models.cost =
            std::make_unique<TrialCost>(all.geometry(), model.evidence(), options_.learning.search);
    if (history.size() >= last_ones(problem) && history.size() < search_trials(problem, trials_))
        if (auto proposal = smaller_command(models, problem, all, history, seen)) return *proposal;
    if (const auto serves_seconds = options_.serves_seconds)
        if (auto answer = not_worth_it(models, problem, all, history, seen, *serves_seconds))
            return *answer;
    const bool explore = options_.explore_every > 0 &&
                         history.size() % options_.explore_every == options_.explore_every - 1;
    const std::optional<Choice> suggested = best_suggestion(models, all, std::move(suggestions));
    if (!suggested)
        if (auto proposal = far_away(model, problem, all, seen)) return *proposal;
    const std::optional<Choice> choice =
        suggested ? suggested : best_new(models, problem, all, seen, explore);
    if (!choice) return Finished{"no new configuration is left"};
    const bool repeats_enough = static_cast<double>(history.size() - seen.size()) >=
                                most_repeated * static_cast<double>(history.size());
    if (problem.replicates_inform && !explore && !suggested && !repeats_enough)
        if (const auto replicate = best_replicate(model)) {
            const ConfigurationEvidence& entry = model.evidence()[replicate->first];
            const double its_seconds =
                models.cost ? models.cost->log_seconds({entry.point}).front() : 0;
            if (replicate->second - its_seconds > choice->score.total())
                return Proposal{entry.configuration,
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
                        rounded(choice->score.log_limits) +
                        (models.cost ? ", ln seconds " + rounded(choice->score.log_seconds) : "")};
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
    if (options_.suggestions == nullptr) return result;
    std::set<Configuration> tried;
    for (const Configuration& one : *options_.suggestions)
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
    if (options_.patience == 0 || problem.objective.several() || !model.incumbent())
        return std::nullopt;
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
    if (without_gain < options_.patience || (without_gain - options_.patience) % 2 != 0)
        return std::nullopt;
    // Far away the model knows little: what is not likely to work is left to the gains.
    const double least_chance = least_chance_of(model);
    const Eigen::VectorXf& log_chances = kept_.ranking(least_chance).log_chances();
    std::vector<double> chances(static_cast<std::size_t>(log_chances.size()));
    std::transform(log_chances.begin(), log_chances.end(), chances.begin(), [&](float log_chance) {
        const double chance = std::exp(static_cast<double>(log_chance));
        return chance < std::max(options_.first_chance, least_chance) ? 0 : chance;
    });
    if (std::all_of(chances.begin(), chances.end(), [](double chance) { return chance <= 0; }))
        return std::nullopt;
    Configuration configuration =
        all.configuration(problem, farthest(all.geometry(), all.pool(), tried, chances, seed_));
    if (seen.contains(configuration)) return std::nullopt;
    return Proposal{std::move(configuration), "far from all that was tried: the last " +
                                                  std::to_string(without_gain) +
                                                  " configurations gained too little"};
}

/// The end of a search whose best further trial, of a new configuration or of one again, gains less
/// serving time than it takes: E[gain of ln y] serves_seconds < E[seconds] (the rule of Xie et al.,
/// Cost-aware Stopping for Bayesian Optimization, arXiv 2507.12453, 2025, with seconds for both).
/// Nothing: another trial is worth it, or no trial has told what it took.
std::optional<Answer> Bayesian::Search::not_worth_it(const Models& models, const Problem& problem,
                                                     const Candidates& all,
                                                     std::span<const Trial> history,
                                                     const std::set<Configuration>& seen,
                                                     double serves_seconds) {
    const PendingAwareModel& model = models.learned;
    if (problem.objective.several() || !model.incumbent()) return std::nullopt;
    const TrialCost cost(all.geometry(), model.evidence(), options_.learning.search);
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
    if (const auto choice = best_new(models, problem, all, seen, false))
        look(choice->score.total() + choice->score.log_seconds,
             all.geometry().encode(choice->configuration));
    if (const auto replicate = best_replicate(model); replicate && problem.replicates_inform)
        look(replicate->second, model.evidence()[replicate->first].point);
    if (pays || taken <= 0) return std::nullopt;
    if (std::any_of(history.begin(), history.end(),
                    [](const Trial& trial) { return !trial.told(); }))
        return Waiting{};

    const auto dropped = [](const Trial& trial) {
        return trial.why.starts_with(without_idle_settings);
    };
    constexpr std::ptrdiff_t attempts =
        3;  // what an attempt loses teaches the next one which setting to keep
    if (std::count_if(history.begin(), history.end(), dropped) < attempts)
        if (auto proposal = smaller_command(models, problem, all, history, seen)) return *proposal;
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
    const Models& models, const Problem& problem, const Candidates& all,
    std::span<const Trial> history, const std::set<Configuration>& seen) const {
    const PendingAwareModel& model = models.learned;
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
        const std::vector<Choice> choices = choices_of(models, all, std::move(reductions));
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
    return Proposal{std::move(smaller), without_idle_settings + dropped};
}

std::vector<CandidateScore> Bayesian::Search::Models::scores(
    const std::vector<EncodedPoint>& points,
    const std::vector<std::vector<PriorBelief>>& beliefs) const {
    std::vector<CandidateScore> result = learned.scores(points, beliefs);
    const std::vector<double> seconds =
        cost ? cost->log_seconds(points) : std::vector<double>(points.size(), 0.0);
    for (std::size_t i = 0; i < result.size(); ++i) result[i].log_seconds = seconds[i];
    return result;
}

/// The best of the ranking, the first first.
std::vector<std::size_t> Bayesian::Search::promising(const Models& models, const Candidates& all,
                                                     double least_chance, std::size_t most,
                                                     bool explore) {
    const CandidateRanking& ranking = kept_.ranking(least_chance);
    const bool seconds = models.cost && !explore;
    if (!seconds && models.learned.tradeoff() == nullptr)
        return ranking.best(models.learned, most, explore);
    Eigen::VectorXf scores = ranking.scores(models.learned, explore);
    if (seconds) models.cost->rank(all.pool(), scores);
    return highest(scores, most);
}

/// Of working. Where more failed than the budget of risk allows, only what is as sure as a
/// configuration of which nothing is known.
double Bayesian::Search::least_chance_of(const PendingAwareModel& model) const {
    const std::vector<ConfigurationEvidence>& evidence = model.evidence();
    const auto count = [&](const auto& is) {
        return static_cast<double>(std::count_if(evidence.begin(), evidence.end(), is));
    };
    const double failed = count([](const ConfigurationEvidence& entry) { return !entry.works; });
    const double numbers =
        count([](const ConfigurationEvidence& entry) { return entry.measured(); });
    if (failed > options_.failing_share * static_cast<double>(evidence.size()))
        return options_.careful_chance;
    return numbers < static_cast<double>(options_.enough_numbers) ? options_.first_chance
                                                                  : options_.least_chance;
}

std::optional<Bayesian::Search::Choice> Bayesian::Search::best_new(
    const Models& models, const Problem& problem, const Candidates& all,
    const std::set<Configuration>& seen, bool explore) {
    const double least_chance = least_chance_of(models.learned);
    const std::vector<std::size_t> order =
        promising(models, all, least_chance, options_.rescored + seen.size(), explore);
    std::vector<Configuration> configurations;
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const std::size_t i : order) {
        Configuration configuration = all.configuration(problem, i);
        if (seen.contains(configuration)) continue;
        configurations.push_back(std::move(configuration));
        points.push_back(all.pool().point(i));
        beliefs.push_back(all.beliefs(i));
    }
    const std::vector<CandidateScore> scores = models.scores(points, beliefs);
    std::vector<Choice> choices;
    for (std::size_t i = 0; i < scores.size(); ++i)
        choices.push_back({std::move(configurations[i]), scores[i]});
    if (explore && !choices.empty()) return choices.front();
    if (!all.listed()) climb(models, problem, all, seen, choices);
    const auto unlikely = [&](const Choice& one) {
        return one.score.log_works < std::log(least_chance);
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
    const Models& models, const Candidates& all, std::vector<Configuration> configurations) const {
    std::vector<EncodedPoint> points;
    std::vector<std::vector<PriorBelief>> beliefs;
    for (const Configuration& one : configurations) {
        points.push_back(all.geometry().encode(one));
        beliefs.push_back(options_.beliefs.of(one));
    }
    const std::vector<CandidateScore> scores = models.scores(points, beliefs);
    std::vector<Choice> result;
    for (std::size_t i = 0; i < scores.size(); ++i)
        result.push_back({std::move(configurations[i]), scores[i]});
    return result;
}

/// The best of those that may work, unless the best so far is better by two standard deviations.
/// With several goals that is never sure: what is worse in one may be better in another.
std::optional<Bayesian::Search::Choice> Bayesian::Search::best_suggestion(
    const Models& models, const Candidates& all, std::vector<Configuration> suggestions) const {
    const auto incumbent = models.learned.incumbent();
    const bool one_goal = models.learned.tradeoff() == nullptr;
    std::optional<Choice> best;
    for (Choice& choice : choices_of(models, all, std::move(suggestions))) {
        const Prediction& objective = choice.score.objective;
        if (choice.score.log_works < std::log(options_.least_chance)) continue;
        if (one_goal && incumbent &&
            objective.mean + 2 * std::sqrt(objective.variance) <
                models.learned.at_evidence()[*incumbent].mean)
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
void Bayesian::Search::climb(const Models& models, const Problem& problem, const Candidates& all,
                             const std::set<Configuration>& seen,
                             std::vector<Choice>& choices) const {
    const std::size_t places = models.learned.evidence().size() > options_.learning.search.many
                                   ? options_.places_of_many
                                   : options_.places;
    constexpr int sweeps = 12;
    const auto better = [](const Choice& a, const Choice& b) {
        return a.score.total() > b.score.total() ||
               (a.score.total() == b.score.total() && a.configuration < b.configuration);
    };
    LevelRowSet scored(problem.space);
    for (const Configuration& configuration : seen) scored.insert(configuration);
    std::set<Configuration> expanded;
    for (const Choice& choice : choices) scored.insert(choice.configuration);
    const double least = std::log(least_chance_of(models.learned));
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        std::sort(choices.begin(), choices.end(), better);
        forget_all_but_the_best(choices, std::max(places, options_.rescored), least);
        std::vector<Configuration> from;
        if (const PendingAwareModel& model = models.learned; sweep == 0)
            if (const auto incumbent = model.incumbent())
                from.push_back(model.evidence()[*incumbent].configuration);
        for (std::size_t i = 0; i < std::min(places, choices.size()); ++i)
            from.push_back(choices[i].configuration);
        std::vector<Configuration> fresh;
        for (const Configuration& place : from) {
            if (!expanded.insert(place).second) continue;
            for (Configuration& neighbour : neighbours(problem.space, place))
                if (scored.insert(neighbour)) fresh.push_back(std::move(neighbour));
        }
        if (fresh.empty()) return;
        std::vector<Choice> found = choices_of(models, all, std::move(fresh));
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
