// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/standings.hpp"
#include "shown_levels.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Levels that cannot be served, as far as is known: each configuration with them that was tried
/// failed by itself or broke a limit, while others pass. What their figure gained is no gain.
class RefusedLevels {
public:
    /// `standings` and the parameters of `levels` must outlive it.
    RefusedLevels(const Standings& standings, const std::vector<ShownLevel>& levels)
        : standings_(standings) {
        for (const ShownLevel& one : levels)
            if (!why({one}).empty()) refused_.push_back({&one.parameter, one.level, one.shown});
    }

    /// Of levels together. Empty: some configuration passes, none was tried, or nothing passes at
    /// all.
    [[nodiscard]] std::string why(const std::vector<ShownLevel>& levels) const {
        std::string result;
        std::size_t tried = 0;
        bool any_passes = false;
        for (const Standing& standing : standings_.all()) {
            any_passes = any_passes || standing.passes();
            const bool has = std::all_of(
                levels.begin(), levels.end(),
                [&](const ShownLevel& level) { return holds(standing.configuration, level); });
            if (!has || !told_of_itself(standing)) continue;
            if (standing.passes() || standing.refusal == Refusal::slower) return "";
            if (tried++ == 0) result = standing.refused;
        }
        if (!any_passes) return "";
        return tried > 1 ? result + " (the first of " + std::to_string(tried) + " configurations)"
                         : result;
    }
    /// Whether a configuration has one of the levels that are refused.
    [[nodiscard]] bool in(const Configuration& configuration) const {
        return std::any_of(refused_.begin(), refused_.end(), [&](const Kept& one) {
            return holds(configuration, {*one.parameter, one.level, one.shown});
        });
    }
    /// Of configurations those that have no refused level; where none is left those that passed,
    /// which have none.
    [[nodiscard]] std::vector<Configuration> without(
        std::vector<Configuration> configurations) const {
        std::erase_if(configurations, [&](const Configuration& one) { return in(one); });
        if (configurations.empty())
            for (const Standing& standing : standings_.all())
                if (standing.passes()) configurations.push_back(standing.configuration);
        return configurations;
    }

private:
    struct Kept {
        const Parameter* parameter = nullptr;
        Value level;
        std::size_t shown = 0;
    };

    /// A failure that was not its own tells nothing of a configuration.
    static bool told_of_itself(const Standing& standing) {
        return std::any_of(standing.trials.begin(), standing.trials.end(), [](const Trial* trial) {
            return trial->measurement() != nullptr ||
                   (trial->failure() != nullptr && teaches(trial->failure()->kind));
        });
    }

    const Standings& standings_;
    std::vector<Kept> refused_{};
};

}  // namespace servetune
