// SPDX-License-Identifier: Apache-2.0
#include "model_cache.hpp"

#include <cstddef>
#include <utility>

namespace servetune {

namespace {

/// Start points of the fits depend on the study's seed, the space and the amount told.
std::uint64_t seed_of_fits(const Problem& problem, const Standings& standings, std::uint64_t seed) {
    std::size_t told = 0;
    for (const Standing& standing : standings.all()) told += standing.told() ? 1 : 0;
    return reseeded(derive_seed(fingerprint_of(Candidates::key_of(problem)).bits, told), seed);
}

}  // namespace

std::shared_ptr<const FittedModels> fitted_models(
    const Problem& problem, const Standings& standings,
    const std::vector<ConfigurationEvidence>& evidence, const LevelGeometry& geometry,
    std::uint64_t seed, OutputScale::Tail tail) {
    return std::make_shared<const FittedModels>(problem, without_pending(evidence), geometry,
                                                standings.noise(),
                                                seed_of_fits(problem, standings, seed), tail);
}

PendingAwareModel learned_anew(const Problem& problem, const Standings& standings,
                               const LevelGeometry& geometry, const Beliefs& beliefs,
                               std::uint64_t seed, OutputScale::Tail tail) {
    std::vector<ConfigurationEvidence> evidence =
        worth_learning(evidence_of(problem, standings, geometry, beliefs), problem.objective);
    auto told = fitted_models(problem, standings, evidence, geometry, seed, tail);
    return {problem, std::move(told), std::move(evidence), standings.noises()};
}

}  // namespace servetune
