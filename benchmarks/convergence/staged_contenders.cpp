// SPDX-License-Identifier: Apache-2.0
// The published method, one parameter after the other, and what else was proposed to follow it.
#include "contender.hpp"

#include "servetune/standings.hpp"
#include "servetune/staged.hpp"

#include <algorithm>
#include <optional>

namespace servetune::convergence {
namespace {

Staged::Options one_by_one(const SearchSpace& space) {
    Staged::Options options;
    for (const std::size_t i : space.parents_first())
        options.stages.push_back({space.parameters()[i].name, {space.parameters()[i].name}});
    return options;
}

class StagedUndo : public Strategy {
public:
    explicit StagedUndo(const SearchSpace& space) : staged_(one_by_one(space)) {}
    [[nodiscard]] std::string name() const override { return "staged_undo"; }

    /// What to try follows from the leader alone, so a new leader begins a new round.
    [[nodiscard]] Answer ask(const Problem& problem, std::span<const Trial> history,
                             Rng& /*rng*/) const override {
        const Staged::Walk walk = staged_.walk(problem, history);
        if (!std::holds_alternative<Finished>(walk.answer)) return walk.answer;
        const Standings standings(history, problem.objective, problem.decision);
        const Standing* leader = standings.best();
        if (leader == nullptr) return Finished{"nothing passes"};
        const Configuration& best = leader->configuration;
        const Configuration usual = problem.space.default_configuration();
        for (const auto& [name, value] : usual.entries())
            if (const Value* now = best.find(name); now != nullptr && *now != value)
                if (auto next = fresh(problem, standings, best, {{name, value}}))
                    return Proposal{*next, "undo " + name};
        Assignment all;
        for (const Staged::Step& step : walk.steps)
            if (const auto changes = best_of(step, problem, standings))
                all.insert(changes->begin(), changes->end());
        for (const auto& [name, value] : all)
            if (auto next = fresh(problem, standings, best, {{name, value}}))
                return Proposal{*next, "combine " + name};
        if (auto next = fresh(problem, standings, best, all)) return Proposal{*next, "combine all"};
        return Finished{"the leader stands"};
    }

private:
    /// The leader with these changes, where it is possible and was not measured.
    static std::optional<Configuration> fresh(const Problem& problem, const Standings& standings,
                                              const Configuration& leader,
                                              const Assignment& changes) {
        try {
            Configuration changed = problem.space.changed(leader, changes);
            if (problem.space.feasible(changed) && standings.find(changed) == nullptr)
                return changed;
        } catch (const SpaceError&) {
            return std::nullopt;  // a change of what is inactive now
        }
        return std::nullopt;
    }

    /// The changes that were best in a stage, its base aside.
    static std::optional<Assignment> best_of(const Staged::Step& step, const Problem& problem,
                                             const Standings& standings) {
        const Staged::Candidate* best = nullptr;
        double value = 0;
        for (const Staged::Candidate& candidate : step.candidates) {
            if (!candidate.excluded.empty() || candidate.configuration == step.base) continue;
            const Standing* standing = standings.find(candidate.configuration);
            if (standing == nullptr || !standing->passes()) continue;
            const double mean = standing->estimate().mean;
            if (best != nullptr && !problem.objective.leading().better(mean, value)) continue;
            best = &candidate;
            value = mean;
        }
        return best == nullptr ? std::nullopt : std::optional(best->changes);
    }

    Staged staged_;
};

}  // namespace

std::unique_ptr<Strategy> staged_over(const SearchSpace& space) {
    return std::make_unique<Staged>(one_by_one(space));
}
std::unique_ptr<Strategy> staged_undo(const SearchSpace& space) {
    return std::make_unique<StagedUndo>(space);
}

}  // namespace servetune::convergence
