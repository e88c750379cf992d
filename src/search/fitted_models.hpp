// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "evidence.hpp"
#include "feasibility.hpp"
#include "goal_data.hpp"
#include "out_of_memory_rule.hpp"
#include "output_scale.hpp"
#include "surrogate.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// What is fitted to the told trials of a history: Gaussian processes of ln(objective) and of each
/// limit's margin, and a probit process of what works. Trials that are under way change none of it.
class FittedModels {
public:
    /// `evidence`: of what was told. `geometry` must outlive it. `noise_cv`: of one measurement of
    /// the leading goal.
    FittedModels(const Problem& problem, std::vector<ConfigurationEvidence> evidence,
                 const LevelGeometry& geometry, double noise_cv, std::uint64_t seed,
                 OutputScale::Tail tail = OutputScale::Tail::compressed)
        : geometry_(geometry),
          seed_(seed),
          evidence_(std::move(evidence)),
          out_of_memory_(problem.space, geometry, evidence_),
          scale_(problem.objective.leading().direction == Direction::maximize, {}, 0) {
        std::vector<double> values;
        for (const ConfigurationEvidence& entry : evidence_)
            if (entry.measured()) values.push_back(entry.means.front());
        scale_ = OutputScale(problem.objective.leading().direction == Direction::maximize, values,
                             2 * noise_cv,
                             tail);  // a spread of noise alone would make noise worth learning
        learn_objective(noise_cv, derive_seed(seed, 1));
        learn_limits(evidence_.empty() ? 0 : evidence_.front().margins.size(),
                     derive_seed(seed, 2));
        learn_what_works();
        find_incumbent();
    }

    [[nodiscard]] const LevelGeometry& geometry() const { return geometry_; }
    [[nodiscard]] std::uint64_t seed() const { return seed_; }  ///< of where the fits start
    [[nodiscard]] const std::vector<ConfigurationEvidence>& evidence() const { return evidence_; }
    [[nodiscard]] const OutputScale& scale() const { return scale_; }
    [[nodiscard]] const Surrogate& objective() const { return *objective_; }
    /// Of each limit its margin; null: no trial has that metric.
    [[nodiscard]] const std::vector<std::unique_ptr<Surrogate>>& limits() const { return limits_; }
    [[nodiscard]] const FeasibilityModel* works() const {
        return works_.get();
    }  ///< null: nothing failed yet and no margin is known
    [[nodiscard]] const OutOfMemoryRule& out_of_memory() const { return out_of_memory_; }
    /// The best posterior mean among the evidence that pass; null where none does.
    [[nodiscard]] const ConfigurationEvidence* incumbent() const {
        return incumbent_ ? &evidence_[*incumbent_] : nullptr;
    }
    [[nodiscard]] Eigen::Index observed() const {
        return observed_;
    }  ///< the incumbent, among the objective's observations

    /// What is believed of some points as the objective's experts take it: one row each, one column
    /// a source. Or what its model of a limit takes: one column.
    [[nodiscard]] Eigen::MatrixXd columns(const std::vector<std::vector<PriorBelief>>& beliefs,
                                          std::optional<std::size_t> limit = {}) const;

private:
    void learn_objective(double noise_cv, std::uint64_t seed);
    void learn_limits(std::size_t limits, std::uint64_t seed);
    void learn_what_works();
    void find_incumbent();

    const LevelGeometry& geometry_;
    std::uint64_t seed_;
    std::vector<ConfigurationEvidence> evidence_;
    OutOfMemoryRule out_of_memory_;
    OutputScale scale_;
    /// of each source, over what gave a number; nothing: of none is anything believed
    std::vector<std::optional<double>> belief_centres_{};
    std::unique_ptr<Surrogate> objective_{};
    std::vector<std::unique_ptr<Surrogate>> limits_{};
    std::vector<double> units_{};  ///< of each limit's margins
    std::unique_ptr<FeasibilityModel> works_{};
    std::optional<std::size_t> incumbent_{};
    Eigen::Index observed_ = 0;
};

}  // namespace servetune
