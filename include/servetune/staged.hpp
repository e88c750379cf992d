// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/trial/standings.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// One step of a staged search: some partial configurations, tried on top of what was decided
/// before.
struct Stage {
    std::string name;
    /// Every combination of these parameters' levels is a candidate; or, when it is empty,
    /// `candidates` are.
    std::vector<std::string> product{};
    std::vector<Assignment> candidates{};
    /// Whether its winner becomes the base of the later stages. Always so in comparison with the
    /// incumbent; in comparison with a baseline only stages that choose the baseline itself (the
    /// engine, say) set it.
    bool carried = true;
};

/// The method of the published tuning studies: one parameter (or group) after the other, the rest
/// held fixed.
///
/// The base is the default configuration at first. Each stage measures its candidates on top of the
/// base; its best passing candidate is worth having when `worth_it(decision, gain over the base)`.
/// A carried stage's worthy winner becomes the base. With every stage carried this is the
/// comparison with the incumbent; with only the first carried, all later stages are measured
/// against one baseline and the best of them wins in the end.
///
/// Where the decision asks for significance and measuring again informs, a best candidate that
/// gains enough but not significantly is measured again, in turn with the base, until it is decided
/// or both have `replicates` measurements; only where later stages build on it, for the study
/// confirms what is best in the end.
class Staged : public Strategy {
public:
    /// The stages in their order, and how often a comparison is measured.
    struct Options {
        std::vector<Stage> stages;
        std::size_t replicates =
            3;  ///< most measurements of one configuration to settle a comparison

        /// What cannot be in these options, for a person; empty: nothing.
        [[nodiscard]] std::string why_invalid() const {
            OptionCheck check;
            check.within("replicates", static_cast<double>(replicates), 1, 1000);
            for (const Stage& stage : stages)
                check.that(stage.product.empty() != stage.candidates.empty(),
                           "stage '" + stage.name + "'", "a product or candidates",
                           stage.product.empty() ? "neither" : "both");
            return check.text();
        }
    };

    /// Throws UsageError where the options cannot be.
    explicit Staged(Options options) : options_(std::move(options)) {
        check_options("staged", options_.why_invalid());
    }

    [[nodiscard]] std::string name() const override { return "staged"; }
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng&) const override {
        return walk(problem, history).answer;
    }

    /// One candidate of a stage. `excluded` says why it was not tried at all (a constraint, not in
    /// the table, no effect here).
    struct Candidate {
        Assignment changes;
        Configuration configuration{};
        std::string excluded{};
    };
    /// What happened in a stage that was reached.
    struct Step {
        const Stage* stage;
        Configuration base;
        std::vector<Candidate> candidates;
        std::optional<Configuration>
            winner{};  ///< the candidate worth having; nothing when the base stands
        bool complete = false;
    };
    /// What happened so far, and what to do next.
    struct Walk {
        std::vector<Step> steps;
        Answer answer;
    };
    /// Goes through the stages as far as the history reaches. The steps' stages point into this
    /// object.
    [[nodiscard]] Walk walk(const Problem& problem, std::span<const Trial> history) const;

private:
    [[nodiscard]] static std::vector<Assignment> assignments(const Stage& stage,
                                                             const SearchSpace& space);
    [[nodiscard]] static std::vector<Candidate> candidates(const Stage& stage,
                                                           const SearchSpace& space,
                                                           const Configuration& base);
    /// Decides a step whose candidates are all told; a proposal when a replicate is needed first.
    /// `last`: nothing is measured on top of its winner any more.
    std::optional<Answer> decide(Step& step, const Problem& problem, const Standings& standings,
                                 bool last) const;

    Options options_;
};

inline std::vector<Assignment> Staged::assignments(const Stage& stage, const SearchSpace& space) {
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

inline std::vector<Staged::Candidate> Staged::candidates(const Stage& stage,
                                                         const SearchSpace& space,
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

inline std::optional<Answer> Staged::decide(Step& step, const Problem& problem,
                                            const Standings& standings, bool last) const {
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
    if (worth_it(problem.decision, gain)) step.winner = best->configuration;
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

inline Staged::Walk Staged::walk(const Problem& problem, std::span<const Trial> history) const {
    const Standings standings(history, problem.objective, problem.decision,
                              problem.space.default_configuration());
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
