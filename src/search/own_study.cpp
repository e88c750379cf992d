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
    Bayesian strategy{};
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
    return {SearchSpace(settings.parameters, std::move(rules)), std::move(objective), Decision{}};
}

std::unique_ptr<Journal> journal_of(const StudySettings& settings, const Problem& problem) {
    if (settings.journal.empty()) return std::make_unique<MemoryJournal>();
    StudyIdentity identity{
        "study", {{"seed", std::to_string(settings.seed)}}, std::string(library_version)};
    add_definition(problem.space, problem.objective, identity.definition);
    return std::make_unique<SqliteJournal>(SqliteJournal::open(settings.journal, identity));
}

}  // namespace

std::shared_ptr<Study::Owned> Study::owned(const StudySettings& settings) {
    auto parts = std::make_shared<Owned>(Owned{problem_of(settings)});
    parts->journal = journal_of(settings, parts->problem);
    return parts;
}

Study::Study(const StudySettings& settings) : Study(owned(settings), settings) {}

Study::Study(std::shared_ptr<Owned> parts, const StudySettings& settings)
    : Study(parts->problem, parts->strategy, *parts->journal, Options{settings.seed}) {
    budget_.trials = settings.trials;
    owned_ = std::move(parts);
}

Recommendation Study::optimize(const std::function<double(const Configuration&)>& measure) {
    const std::string& metric = problem().objective.leading().metric;
    return optimize_outcomes([&](const Configuration& c) {
        return Outcome(Measurement{{{metric, {measure(c)}}}});
    });
}

Recommendation Study::optimize(const std::function<Metrics(const Configuration&)>& measure) {
    return optimize_outcomes(
        [&](const Configuration& c) { return Outcome(Measurement{measure(c)}); });
}

Recommendation Study::optimize_outcomes(
    const std::function<Outcome(const Configuration&)>& outcome_of) {
    const auto outcome_or_failure = [&](const Configuration& configuration) -> Outcome {
        try {
            return outcome_of(configuration);
        } catch (const std::exception& error) {
            return Failure{FailureKind::other, error.what()};
        }
    };
    while (const AskResult trial = ask(budget_)) {
        start(trial->id);
        tell(trial->id, outcome_or_failure(trial->configuration));
    }
    return recommendation();
}

}  // namespace servetune
