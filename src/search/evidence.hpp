// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "level_geometry.hpp"
#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/standings.hpp"
#include "servetune/strategy.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace servetune {

/// One configuration and what its trials together teach a model.
struct ConfigurationEvidence {
    Configuration configuration;
    EncodedPoint point;
    /// of each goal as it is judged (`FigureScale`), the leading one first; empty: no number that
    /// may teach
    std::vector<double> means{};
    double replicates =
        0;  ///< measurements in the leading mean, the runs behind one figure counted
    /// For each limit and the guard: above 0 it is kept, ln(value / limit) or the logit's
    /// difference.
    std::vector<std::optional<double>> margins;
    bool works = true;                   ///< it gave a number, or its failure was not its own
    bool ran_out = false;                ///< of memory, and never gave a number
    bool passes = false;                 ///< no limit broken, nothing refused
    bool told = false;                   ///< a trial of it is
    bool pending = false;                ///< a trial of it is under way
    std::vector<PriorBelief> beliefs{};  ///< one of each source
    std::optional<double>
        seconds{};  ///< what its told trials took, their geometric mean; nothing: not known
    std::size_t trials = 0;  ///< asked, told or not

    [[nodiscard]] bool measured() const { return !means.empty(); }
    /// Nothing but what is expected of it can be learned yet.
    [[nodiscard]] bool under_way() const { return pending && !measured(); }
    friend bool operator==(const ConfigurationEvidence&, const ConfigurationEvidence&) = default;
};

/// Whether margins are known and were right of at least as many trials as they were wrong of: else
/// they say nothing of what to try first.
[[nodiscard]] bool margins_hold(const std::vector<ConfigurationEvidence>& evidence);

/// The worst margin over the workloads that have the metric.
[[nodiscard]] std::optional<double> margin_of(const Limit& limit, const Metrics& metrics);

/// Of what was told: not those that nothing is known of yet, nor what is under way of the others.
[[nodiscard]] std::vector<ConfigurationEvidence> without_pending(
    const std::vector<ConfigurationEvidence>& evidence);

inline constexpr std::size_t most_learned = 500;
/// At most `most` entries, in their order: the first (the default), what is under way, the
/// best half of the others by the leading goal, and an even part of the rest, failures among it. A
/// person's history may have ten thousand, and a fit takes O(n^3); where the optimum may be counts
/// most.
[[nodiscard]] std::vector<ConfigurationEvidence> worth_learning(
    std::vector<ConfigurationEvidence> evidence, const Objective& objective,
    std::size_t most = most_learned);

/// The evidence of a history: one entry for each configuration, in the order of their first trials.
/// The order of telling does not matter.
[[nodiscard]] std::vector<ConfigurationEvidence> evidence_of(const Problem& problem,
                                                             const Standings& standings,
                                                             const LevelGeometry& geometry,
                                                             const Beliefs& beliefs);

}  // namespace servetune
