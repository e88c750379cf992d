// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidate_pool.hpp"
#include "evidence.hpp"
#include "servetune/search_space.hpp"

#include <cstddef>
#include <vector>

namespace servetune {

/// Monotone knowledge of memory: a configuration that differs from one that ran out of it only by
/// more of what takes memory (`Parameter::grows_memory`) runs out too. It holds from the first
/// failure on, where a process of what works has to see several.
class OutOfMemoryRule {
public:
    /// To work, where that is known. Chosen, not measured: far below the least chance that is
    /// tried, and not 0, for an engine may share out its memory otherwise than it is said to.
    static constexpr double chance = 0.02;

    /// `geometry`: of `space`; must outlive it.
    OutOfMemoryRule(const SearchSpace& space, const LevelGeometry& geometry,
                    const std::vector<ConfigurationEvidence>& evidence)
        : geometry_(geometry), amounts_(geometry.dimensions()) {
        for (const ConfigurationEvidence& entry : evidence)
            if (entry.ran_out) points_.push_back(entry.point);
        if (points_.empty()) return;
        for (std::size_t d = 0; d < amounts_.size(); ++d)
            amounts_[d].resize(geometry.level_count(d));
        for (std::size_t i = 0; i < space.parameters().size(); ++i)
            if (space.parameters()[i].grows_memory) add_amounts(space.parameters()[i], i + 1);
    }

    /// Of each candidate, whether it runs out as one did.
    [[nodiscard]] std::vector<bool> covers(const CandidatePool& pool) const;
    [[nodiscard]] std::vector<bool> covers(const std::vector<EncodedPoint>& points) const {
        CandidatePool pool(geometry_);
        for (const EncodedPoint& point : points) pool.add(geometry_, point);
        return covers(pool);
    }

private:
    /// What a level takes, on the scale of its parameter; of reals their position says it.
    struct Amount {
        std::size_t of = 0;  ///< parameter, counted from 1; 0: nobody knows
        double amount = 0;
    };
    void add_amounts(const Parameter& parameter, std::size_t number);
    [[nodiscard]] bool as_much(std::size_t dimension, std::size_t level, std::size_t than) const {
        const Amount& a = amounts_[dimension][level];
        const Amount& b = amounts_[dimension][than];
        return level == than || (a.of != 0 && a.of == b.of && a.amount >= b.amount);
    }
    /// At the same levels.
    [[nodiscard]] bool positions_as_much(const EncodedPoint& point, const EncodedPoint& than) const;

    const LevelGeometry& geometry_;
    std::vector<std::vector<Amount>> amounts_;  ///< a list a dimension, by level
    std::vector<EncodedPoint> points_{};        ///< that ran out
};

}  // namespace servetune
