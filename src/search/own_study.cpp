// SPDX-License-Identifier: Apache-2.0
// The study that owns its parts.
#include "servetune/bayesian.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/version.hpp"
#include "study/problem_definition.hpp"

namespace servetune {

struct Study::Owned {
    Problem problem;
    std::shared_ptr<const Strategy> strategy;
    std::unique_ptr<Journal> journal{};
};

namespace {

Problem problem_of(const StudySettings& settings) {
    if (settings.maximize.empty() == settings.minimize.empty())
        throw UsageError(
            "a study has exactly one of 'maximize' and 'minimize', each the name of a metric");
    std::vector<Constraint> rules;
    for (const std::string& rule : settings.rules) rules.push_back(require(rule));
    Objective objective{settings.maximize.empty() ? settings.minimize : settings.maximize,
                        settings.maximize.empty() ? Direction::minimize : Direction::maximize};
    for (const std::string& limit : settings.limits)
        objective.limits.push_back(Limit::parse(limit, true));
    Decision decision;
    decision.noise_cv = settings.noise_cv;
    decision.min_gain = settings.min_gain;
    return {SearchSpace(settings.parameters, std::move(rules)), std::move(objective), decision};
}

std::unique_ptr<Journal> journal_of(const StudySettings& settings, const Problem& problem) {
    if (settings.journal.empty()) return std::make_unique<MemoryJournal>();
    StudyIdentity identity{
        "study", {{"seed", std::to_string(settings.seed)}}, std::string(library_version)};
    add_definition(problem.space, problem.objective, identity.definition);
    const auto add = [&](const char* name, double value, double usual) {
        if (value != usual) identity.definition[name] = text_of(value);
    };
    add("noise_cv", settings.noise_cv, Decision{}.noise_cv);
    add("min_gain", settings.min_gain, Decision{}.min_gain);
    if (settings.strategy) identity.definition["strategy"] = settings.strategy->name();
    return std::make_unique<SqliteJournal>(SqliteJournal::open(settings.journal, identity));
}

}  // namespace

std::shared_ptr<Study::Owned> Study::owned(const StudySettings& settings) {
    auto parts = std::make_shared<Owned>(Owned{problem_of(settings), settings.strategy});
    if (!parts->strategy) parts->strategy = std::make_shared<Bayesian>();
    parts->journal = journal_of(settings, parts->problem);
    return parts;
}

Study::Study(const StudySettings& settings) : Study(owned(settings), settings) {}

Study::Study(std::shared_ptr<Owned> parts, const StudySettings& settings)
    : Study(parts->problem, *parts->strategy, *parts->journal, Options{settings.seed}) {
    budget_.trials = settings.trials;
    budget_.wall_clock_seconds = settings.deadline;
    owned_ = std::move(parts);
}

Recommendation Study::optimize(const std::function<double(const Configuration&)>& measure,
                               Observer* observer) {
    const std::string& metric = problem().objective.leading().metric;
    return optimize_outcomes(
        [&](const Configuration& c) {
            return Outcome(Measurement{{{metric, {measure(c)}}}});
        },
        observer);
}

Recommendation Study::optimize(const std::function<Metrics(const Configuration&)>& measure,
                               Observer* observer) {
    return optimize_outcomes(
        [&](const Configuration& c) { return Outcome(Measurement{measure(c)}); }, observer);
}

Recommendation Study::optimize_outcomes(
    const std::function<Outcome(const Configuration&)>& outcome_of, Observer* observer) {
    const auto outcome_or_failure = [&](const Configuration& configuration) -> Outcome {
        try {
            return outcome_of(configuration);
        } catch (const std::exception& error) {
            return Failure{FailureKind::other, error.what()};
        }
    };
    while (const AskResult trial = ask(budget_)) {
        start(trial->id);
        if (observer != nullptr) observer->started(trials()[trial->id]);
        tell(trial->id, outcome_or_failure(trial->configuration));
        if (observer != nullptr) observer->told(trials()[trial->id], trials());
    }
    return recommendation();
}

}  // namespace servetune
