// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_score.hpp"
#include "expected_improvement.hpp"
#include "fitted_models.hpp"
#include "tradeoff.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace servetune {

/// All that a history says of configurations that were not tried: what was fitted to the told
/// trials (fitted_models.hpp), and those under way as if each gave what is expected of it.
class PendingAwareModel {
public:
    /// `evidence`: of all, those under way as well. `noise_cv`: of one measurement, each goal's.
    PendingAwareModel(const Problem& problem, std::shared_ptr<const FittedModels> told,
                      std::vector<ConfigurationEvidence> evidence,
                      const std::vector<double>& noise_cv);

    [[nodiscard]] const std::vector<ConfigurationEvidence>& evidence() const { return evidence_; }
    [[nodiscard]] std::size_t under_way() const {
        return std::size_t(objective_.experts().front().process.size() -
                           told_->objective().experts().front().process.size());
    }
    [[nodiscard]] const OutputScale& scale() const { return told_->scale(); }
    [[nodiscard]] const Surrogate& objective() const { return objective_; }
    /// The best posterior mean among the evidence that pass; nothing where none does.
    [[nodiscard]] std::optional<std::size_t> incumbent() const { return incumbent_; }
    [[nodiscard]] const std::vector<Prediction>& at_evidence() const {
        return at_evidence_;
    }  ///< one each, standardised
    [[nodiscard]] const Tradeoff* tradeoff() const {
        return tradeoff_.get();
    }  ///< of several goals; null where there is one
    /// What is believed of some points as the objective's experts take it: one row each, one column
    /// a source.
    [[nodiscard]] Eigen::MatrixXd believed(
        const std::vector<std::vector<PriorBelief>>& beliefs) const {
        return told_->columns(beliefs);
    }
    /// In units of the standardised objective.
    [[nodiscard]] double noise_variance() const {
        return objective_.experts().front().process.noise_variance();
    }

    /// In double, by all experts. `beliefs`: those of each point, none where there are no sources.
    [[nodiscard]] std::vector<CandidateScore> scores(
        const std::vector<EncodedPoint>& points,
        const std::vector<std::vector<PriorBelief>>& beliefs) const;

private:
    std::shared_ptr<const FittedModels> told_;
    std::vector<ConfigurationEvidence> evidence_;
    Surrogate objective_;
    std::vector<Prediction> at_evidence_{};
    std::optional<std::size_t> incumbent_{};
    std::unique_ptr<Tradeoff> tradeoff_{};  ///< null: one goal
};

}  // namespace servetune
