// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/space/expression_states.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace servetune {

/// Whether an integer has so many levels that a decision diagram looks at runs of them, not at
/// each.
inline bool has_runs(const Parameter& parameter) {
    constexpr std::size_t tried_one_by_one = 128;
    return std::holds_alternative<IntegerDomain>(parameter.domain) &&
           parameter.level_count() > tried_one_by_one;
}

/// Runs of neighbouring levels that are the same to all rules, given what is decided: where `buffer
/// >= 4 * threads` and eight threads are decided, the buffers below 32 and those from 32 on.
class LevelRuns {
public:
    explicit LevelRuns(const SearchSpace& space);

    /// The first level of each run, ascending, from level 0 on. `slot_of(index)` answers for the
    /// parameters of its rules; `looked_at` grows by the intervals that were looked at. For
    /// parameters that have runs.
    template <class SlotOf>
    [[nodiscard]] std::vector<std::uint32_t> firsts(std::size_t parameter, const SlotOf& slot_of,
                                                    std::size_t& looked_at) const {
        const Parameter& wide = space_.parameters()[parameter];
        std::vector<std::uint32_t> result = fixed_[parameter];
        result.push_back(0);
        const auto last = static_cast<std::uint32_t>(wide.level_count() - 1);
        for (const std::size_t which : space_.constraints_of(parameter)) {
            const auto* rule = std::get_if<Require>(&space_.constraints()[which]);
            if (rule == nullptr) continue;
            const std::vector<std::size_t>& scope = space_.scope(which);
            const auto name = static_cast<std::size_t>(
                std::find(scope.begin(), scope.end(), parameter) - scope.begin());
            looked_at += rule->expression.append_changes(
                name, [&](std::size_t i) { return state_of(space_, scope[i], slot_of); },
                wide.offers_unset ? 1 : 0, last,
                [&](std::uint32_t level) { return wide.level(level); }, result);
        }
        sort_once(result);
        while (result.back() > last) result.pop_back();
        return result;
    }

    /// A parameter as the expressions see it. A real stays undecided for good, and with it what
    /// depends on it.
    template <class SlotOf>
    static Expression::NameState state_of(const SearchSpace& space, std::size_t parameter,
                                          const SlotOf& slot_of) {
        const Parameter& which = space.parameters()[parameter];
        const bool never = which.continuous() && !which.value_when_unset;
        return {never || slot_of(parameter).state != Slot::State::undecided,
                space.known_value(parameter, slot_of)};
    }

private:
    static void sort_once(std::vector<std::uint32_t>& places) {
        std::sort(places.begin(), places.end());
        places.erase(std::unique(places.begin(), places.end()), places.end());
    }

    const SearchSpace& space_;
    std::vector<std::vector<std::uint32_t>>
        fixed_;  ///< by parameter: where conditions, forbidden and allowed values cut
};

}  // namespace servetune
