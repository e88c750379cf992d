// SPDX-License-Identifier: Apache-2.0
// The study that owns its parts.
#include "servetune/bayesian.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"
#include "servetune/version.hpp"

namespace servetune {

struct Study::Owned {
    Problem problem;
    Bayesian strategy{};
    std::unique_ptr<Journal> journal{};
    Budget budget{};
    std::uint64_t seed = 0;
};

namespace {

Problem problem_of(const StudySettings& settings) {
    if (settings.maximize.empty() == settings.minimize.empty())
        throw UsageError("a study has exactly one of 'maximize' and 'minimize', each the name of a metric");
    std::vector<Constraint> rules;
    for (const std::string& rule : settings.rules) rules.push_back(require(rule));
    Objective objective{settings.maximize.empty() ? settings.minimize : settings.maximize,
                        settings.maximize.empty() ? Direction::minimize : Direction::maximize};
    for (const std::string& limit : settings.limits) objective.limits.push_back(Limit::parse(limit, true));
    return {SearchSpace(settings.parameters, std::move(rules)), std::move(objective), Decision{}};
}

/// What a journal must not be resumed with when it has changed.
StudyIdentity identity_of(const Problem& problem) {
    StudyIdentity identity{"study", {}, std::string(library_version)};
    for (const Parameter& parameter : problem.space.parameters())
        identity.definition["space." + parameter.name] = parameter.domain_text() + ", default " + text_of(parameter.default_value);
    std::size_t i = 0;
    for (const Constraint& rule : problem.space.constraints())
        identity.definition["constraints[" + std::to_string(i++) + "]"] = text_of(rule);
    identity.definition["objective"] = problem.objective.leading().text();
    i = 0;
    for (const Limit& limit : problem.objective.limits) identity.definition["objective.limits[" + std::to_string(i++) + "]"] = limit.text();
    return identity;
}

}  // namespace

std::shared_ptr<Study::Owned> Study::owned(const StudySettings& settings) {
    auto parts = std::make_shared<Owned>(Owned{problem_of(settings)});
    parts->budget.trials = settings.trials;
    parts->seed = settings.seed;
    if (settings.journal.empty()) parts->journal = std::make_unique<MemoryJournal>();
    else parts->journal = std::make_unique<SqliteJournal>(SqliteJournal::open(settings.journal, identity_of(parts->problem)));
    return parts;
}

Study::Study(const StudySettings& settings) : Study(owned(settings)) {}

Study::Study(std::shared_ptr<Owned> parts) : Study(parts->problem, parts->strategy, *parts->journal, Options{parts->seed}) {
    budget_ = parts->budget;
    owned_ = std::move(parts);
}

}  // namespace servetune
