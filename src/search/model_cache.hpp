// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_ranking.hpp"
#include "pending_aware_model.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// The models of what was told. `geometry` must outlive them.
[[nodiscard]] std::shared_ptr<const FittedModels> fitted_models(
    const Problem& problem, const Standings& standings,
    const std::vector<ConfigurationEvidence>& evidence, const LevelGeometry& geometry,
    std::uint64_t seed, OutputScale::Tail tail = OutputScale::Tail::compressed);

/// The same, of a history. The search decides by a compressed tail, effects are told by a straight
/// one.
[[nodiscard]] PendingAwareModel learned_anew(
    const Problem& problem, const Standings& standings, const LevelGeometry& geometry,
    const Beliefs& beliefs, std::uint64_t seed,
    OutputScale::Tail tail = OutputScale::Tail::compressed);

/// What one ask keeps for the next: the list of candidates while the space is the same, the models
/// and the ranking while nothing was told. The cache never changes an answer.
class ModelCache {
public:
    const Candidates& candidates(const Problem& problem, const Beliefs& beliefs,
                                 std::uint64_t seed) {
        if (std::string key = identity_of(problem) + "|" + std::to_string(seed) +
                              (beliefs.size() > 0 ? "|believed" : "");
            !candidates_ || space_ != key) {
            ranking_.reset();
            told_.reset();
            candidates_ = std::make_unique<Candidates>(problem, beliefs, seed);
            space_ = std::move(key);
        } else if (beliefs_ != beliefs) {
            ranking_.reset();
            told_.reset();
            candidates_->believe(beliefs);
        }
        beliefs_ = beliefs;
        return *candidates_;
    }

    PendingAwareModel learned(const Problem& problem, const Standings& standings,
                              const Beliefs& beliefs, std::uint64_t seed) {
        const LevelGeometry& geometry = candidates(problem, beliefs, seed).geometry();
        std::vector<ConfigurationEvidence> evidence =
            worth_learning(evidence_of(problem, standings, geometry, beliefs), problem.objective);
        if (!told_ || objective_ != problem.objective || noises_ != standings.noises() ||
            told_->evidence() != without_pending(evidence)) {
            ranking_.reset();
            told_ = fitted_models(problem, standings, evidence, geometry, seed);
            objective_ = problem.objective;
            noises_ = standings.noises();
        }
        return {problem, told_, std::move(evidence), standings.noises()};
    }

    /// Of all candidates by what was learned last.
    const CandidateRanking& ranking(double least_chance) {
        if (!ranking_ || least_chance_ != least_chance) {
            ranking_ = std::make_unique<const CandidateRanking>(*told_, *candidates_, least_chance);
            least_chance_ = least_chance;
        }
        return *ranking_;
    }

private:
    /// All that decides the candidates, and their distances.
    static std::string identity_of(const Problem& problem) {
        std::string result = Candidates::key_of(problem);
        for (const Parameter& parameter : problem.space.parameters()) {
            result += parameter.ordered() ? "|<" : "|";
            for (const Condition& condition : parameter.active_when) {
                result += "&" + condition.parent;
                for (const Value& value : condition.values) result += "=" + text_of(value);
            }
        }
        return result;
    }

    std::string space_{};
    std::unique_ptr<Candidates> candidates_{};
    Beliefs beliefs_{};  ///< of the candidates
    Objective objective_{};
    std::vector<double> noises_{};
    std::shared_ptr<const FittedModels> told_{};
    std::unique_ptr<const CandidateRanking> ranking_{};
    double least_chance_ = 0;  ///< of `ranking_`
};

}  // namespace servetune
