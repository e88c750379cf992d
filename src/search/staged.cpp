// SPDX-License-Identifier: Apache-2.0
#include "servetune/staged.hpp"

#include "servetune/detail/base/option_check.hpp"

namespace servetune {

std::vector<Assignment> Staged::assignments(const Stage& stage, const SearchSpace& space) {
    if (stage.product.empty()) return stage.candidates;
    std::vector<Assignment> result{{}};
    for (const std::string& name : stage.product) {
        const Parameter& parameter = space.at(name);
        if (parameter.continuous())
            throw UsageError("stage '" + stage.name + "': '" + name +
                             "' is continuous; list its candidates");
        std::vector<Assignment> extended;
        for (const Assignment& assignment : result)
            for (std::size_t level = 0; level < parameter.level_count(); ++level) {
                extended.push_back(assignment);
                extended.back()[name] = parameter.level(level);
            }
        result = std::move(extended);
    }
    return result;
}

std::vector<Staged::Candidate> Staged::candidates(const Stage& stage, const SearchSpace& space,
                                                  const Configuration& base) {
    std::vector<Candidate> result;
    for (Assignment& changes : assignments(stage, space)) {
        Candidate candidate{std::move(changes)};
        try {
            candidate.configuration = space.changed(base, candidate.changes);
            const auto violations = space.violations(candidate.configuration);
            if (!violations.empty()) candidate.excluded = violations.front();
        } catch (const SpaceError& error) {
            candidate.excluded = error.what();
        }
        result.push_back(std::move(candidate));
    }
    return result;
}

std::optional<Answer> Staged::decide(Step& step, const Problem& problem, const Standings& standings,
                                     bool last) const {
    const Standing& base = *standings.find(step.base);
    const Standing* best = nullptr;
    for (const Candidate& candidate : step.candidates) {
        if (!candidate.excluded.empty() || candidate.configuration == step.base) continue;
        const Standing* standing = standings.find(candidate.configuration);
        if (standing->passes() &&
            (best == nullptr ||
             problem.objective.leading().better(standing->estimate().mean, best->estimate().mean)))
            best = standing;
    }
    step.complete = true;
    if (best == nullptr) return std::nullopt;
    if (!base.passes()) {
        step.winner = best->configuration;
        return std::nullopt;
    }
    const Gain gain = gain_between(problem.objective.leading(), best->estimate(), base.estimate());
    if (meets_min_gain(problem.decision, gain)) step.winner = best->configuration;
    const bool open = problem.decision.rule == Decision::Rule::significant &&
                      gain.value >= problem.decision.min_gain && !gain.significant();
    if (!open || last || !problem.replicates_inform) return std::nullopt;
    const Standing& fewer = best->trials.size() < base.trials.size() ? *best : base;
    if (fewer.trials.size() >= options_.replicates) return std::nullopt;
    step.complete = false;
    if (fewer.pending()) return Waiting{};
    return Proposal{fewer.configuration, "stage '" + step.stage->name +
                                             "': measured again, the gain of " +
                                             best->configuration.text() + " is not yet certain"};
}

Staged::Walk Staged::walk(const Problem& problem, std::span<const Trial> history) const {
    const Standings standings = problem.standings(history);
    Walk result{{}, Waiting{}};
    Configuration base = problem.space.default_configuration();
    const Standing* base_standing = standings.find(base);
    if (base_standing == nullptr || !base_standing->told()) return result;
    for (const Stage& stage : options_.stages) {
        Step& step =
            result.steps.emplace_back(Step{&stage, base, candidates(stage, problem.space, base)});
        bool pending = false;
        for (const Candidate& candidate : step.candidates) {
            if (!candidate.excluded.empty()) continue;
            const Standing* standing = standings.find(candidate.configuration);
            if (standing == nullptr) {
                result.answer = Proposal{candidate.configuration, "stage '" + stage.name + "'"};
                return result;
            }
            pending = pending || !standing->told();
        }
        if (pending) return result;
        if (auto answer = decide(step, problem, standings,
                                 !stage.carried || &stage == &options_.stages.back())) {
            result.answer = std::move(*answer);
            return result;
        }
        if (stage.carried && step.winner) base = *step.winner;
    }
    result.answer = Finished{"all " + std::to_string(options_.stages.size()) + " stages are done"};
    return result;
}

}  // namespace servetune
