// SPDX-License-Identifier: Apache-2.0
#pragma once

// By what the states of `FeasibleSet` are told apart; feasible_set.hpp includes it.

#include "servetune/detail/space/feasible_set.hpp"

namespace servetune {

/// A parameter as a constraint sees it: what is counted for one level holds for its whole class.
inline Slot FeasibleSet::seen(const Prefix& prefix, std::size_t which,
                              std::size_t parameter) const {
    if (prefix.slots[parameter].state == Slot::State::undecided || !classes_.known(which))
        return prefix.slots[parameter];
    const std::vector<std::size_t>& scope = space_.scope(which);
    const auto k =
        static_cast<std::size_t>(std::find(scope.begin(), scope.end(), parameter) - scope.begin());
    const std::uint32_t level = prefix.levels[parameter];
    return classes_.first_of(which, k, level == inactive ? std::nullopt : std::optional(level));
}

/// What an open constraint still remembers of the decided parameters in its scope.
inline void FeasibleSet::append_state(const Prefix& prefix, std::size_t which, Key& key) const {
    const auto slot_of = [&](std::size_t i) { return seen(prefix, which, i); };
    if (space_.is_settled(which, slot_of)) {
        key.push_back(settled);
        return;
    }
    const std::vector<std::size_t>& scope = space_.scope(which);
    const bool has_classes = classes_.known(which);
    if (const auto* rule = std::get_if<Require>(&space_.constraints()[which]);
        rule != nullptr && !has_classes)
        return rule->expression.append_state(
            [&](std::size_t i) { return LevelRuns::state_of(space_, scope[i], slot_of); }, key);
    const bool levels_matter = !std::holds_alternative<Forbid>(
        space_.constraints()[which]);  // else: all of its values so far
    for (std::size_t k = 0; k < scope.size(); ++k) {
        const std::uint32_t level = prefix.levels[scope[k]];
        if (prefix.slots[scope[k]].state == Slot::State::undecided) key.push_back(real);
        else if (has_classes)
            key.push_back(
                classes_.of(which, k, level == inactive ? std::nullopt : std::optional(level)));
        else key.push_back(levels_matter ? level : 0);
    }
}

inline FeasibleSet::Key FeasibleSet::key(const Prefix& prefix, std::size_t depth) const {
    Key result{static_cast<std::uint32_t>(depth)};
    for (const std::size_t which : order_.open_constraints[depth])
        append_state(prefix, which, result);
    for (const std::size_t child : order_.open_children[depth])
        result.push_back(space_.may_be_active(space_.parameters()[child],
                                              [&](std::size_t i) { return prefix.slots[i]; })
                             ? 1
                             : 0);
    return result;
}

}  // namespace servetune
