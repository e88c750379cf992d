// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/acquisition/candidate_pool.hpp"
#include "servetune/space/search_space.hpp"
#include "servetune/strategy/evidence.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace servetune {

/// Monotone knowledge of memory: a configuration that differs from one that ran out of it only by more of what takes memory (`Parameter::grows_memory`) runs out
/// too. It holds from the first failure on, where a process of what works has to see several.
class RanOut {
public:
    /// To work, where that is known. Chosen, not measured: far below the least chance that is tried, and not 0, for an engine may share out its memory otherwise than
    /// it is said to.
    static constexpr double chance = 0.02;

    /// `geometry`: of `space`; must outlive it.
    RanOut(const SearchSpace& space, const LevelGeometry& geometry, const std::vector<Lesson>& lessons)
        : geometry_(geometry), amounts_(geometry.dimensions()) {
        for (const Lesson& lesson : lessons)
            if (lesson.ran_out) points_.push_back(lesson.point);
        if (points_.empty()) return;
        for (std::size_t d = 0; d < amounts_.size(); ++d) amounts_[d].resize(geometry.level_count(d));
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

inline void RanOut::add_amounts(const Parameter& parameter, std::size_t number) {
    const EncodedPoint inactive = geometry_.encode({});
    const auto add = [&](const Value& value, double amount) {
        const EncodedPoint point = geometry_.encode(Configuration({{parameter.name, value}}));
        for (std::size_t d = 0; d < amounts_.size(); ++d)
            if (point.levels[d] != inactive.levels[d]) amounts_[d][point.levels[d]] = {number, amount};
    };
    if (has_positions(parameter))
        return add(parameter.continuous() ? Value(parameter.at_position(0)) : parameter.level(parameter.level_count() - 1), 0);
    bool numbers = false;
    for (std::size_t level = 0; level < parameter.level_count(); ++level) {
        const Value value = parameter.level(level);
        const Value used = is_unset(value) ? parameter.value_when_unset.value_or(Unset{}) : value;
        if (const auto known = number_of(used)) add(value, *known);
        numbers = numbers || number_of(used);
    }
    for (std::size_t level = 0; level < parameter.level_count() && parameter.ordered() && !numbers; ++level)
        if (const Value value = parameter.level(level); !is_unset(value)) add(value, static_cast<double>(level));
}

inline bool RanOut::positions_as_much(const EncodedPoint& point, const EncodedPoint& than) const {
    for (std::size_t d = 0; d < amounts_.size(); ++d) {
        if (!geometry_.continuous(d)) continue;
        const bool grows = amounts_[d][point.levels[d]].of != 0;
        const auto position = static_cast<float>(point.positions[d]);
        const auto other = static_cast<float>(than.positions[d]);
        if (grows ? position < other : position != other) return false;
    }
    return true;
}

inline std::vector<bool> RanOut::covers(const CandidatePool& pool) const {
    std::vector<bool> result(pool.size(), false);
    for (const EncodedPoint& out : points_) {
        std::vector<std::vector<char>> enough(amounts_.size());  // by level
        for (std::size_t d = 0; d < enough.size(); ++d)
            for (std::size_t level = 0; level < amounts_[d].size(); ++level) enough[d].push_back(as_much(d, level, out.levels[d]) ? 1 : 0);
        for (std::size_t i = 0; i < pool.size(); ++i) {
            bool covered = true;
            for (std::size_t d = 0; d < enough.size() && covered; ++d) covered = enough[d][pool.levels(d)[i]] != 0;
            if (covered && (geometry_.finite() || positions_as_much(pool.point(i), out))) result[i] = true;
        }
    }
    return result;
}

}  // namespace servetune
