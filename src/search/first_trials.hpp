// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidates.hpp"
#include "evidence.hpp"
#include "out_of_memory_rule.hpp"
#include "servetune/detail/search/prior_mean.hpp"
#include "servetune/strategy.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// The trials of a search before its models decide, after the default:
///
/// 1. what was measured to be best elsewhere, one of each source (`PriorMean::winners`);
/// 2. of what a source without winners, a cost model, believes to keep the limits the best;
/// 3. each engine's own defaults, for half of the start (`own_default`);
/// 4. a suggestion, if one is due;
/// 5. a few changes of the default (`start_point`); where all those were tried, what is farthest
///    from everything. One only, where a cost model's best is above its median by more than twice
///    its checked error.
class FirstTrials {
public:
    /// All must outlive it. `evidence`: the default's comes first. `of_knowledge`: trials that
    /// knowledge may add to those of the design, refuted knowledge too. `budget`: trials of the
    /// study.
    FirstTrials(const Problem& problem, const Candidates& candidates,
                std::vector<ConfigurationEvidence> evidence, const Beliefs& beliefs,
                std::size_t of_knowledge, std::size_t budget, std::uint64_t seed);

    /// How many trials these beliefs may add. Each source gets one: two more of what a model of
    /// winners believes best gained nothing where it was right, and cost 1 to 3 points of regret
    /// after 20 trials where it was wrong (a kernel's table of another maker's chip, 80 seeds).
    [[nodiscard]] static std::size_t of_knowledge(const Beliefs& beliefs, const SearchSpace& space);
    /// Nothing: the start is over.
    [[nodiscard]] std::optional<Proposal> next(const std::vector<Configuration>& suggestions) const;

private:
    [[nodiscard]] std::optional<Proposal> by_knowledge() const;
    /// The place of the candidate that a source without winners believes best, of those that it
    /// expects to work, and how far that is above the median: ln of the figure, more is better, and
    /// of the chance to keep the limits.
    [[nodiscard]] std::pair<double, std::size_t> promised(std::size_t source) const;
    [[nodiscard]] std::optional<Proposal> by_design(
        const std::vector<Configuration>& suggestions) const;
    [[nodiscard]] bool tried(const Configuration& configuration) const;
    [[nodiscard]] bool may_work(const Configuration& configuration) const;

    const Problem& problem_;
    const Candidates& candidates_;
    std::vector<ConfigurationEvidence> evidence_;
    std::vector<EncodedPoint> points_{};  ///< of the evidence
    const Beliefs& beliefs_;
    std::size_t of_knowledge_;
    std::size_t trials_;       ///< of the start, without those of knowledge
    std::size_t skipped_ = 0;  ///< of them
    std::uint64_t seed_;
    bool margins_;  ///< they hold
    OutOfMemoryRule ran_out_;
};

}  // namespace servetune
