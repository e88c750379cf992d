// SPDX-License-Identifier: Apache-2.0
#pragma once

// Walks through the decision diagram of `FeasibleSet`; feasible_set.hpp includes it.

#include "servetune/detail/space/feasible_set.hpp"

namespace servetune {

// -------------------------------------------------------------------------------------------------
// in order

template <class Visit>
bool FeasibleSet::visit_below(Prefix& prefix, std::size_t depth, const Visit& visit) const {
    if (depth == depth_end()) return visit(made(prefix));
    const std::uint32_t choices = choice_count(prefix, depth);
    const auto look = [&](std::uint32_t level) {
        const bool possible = decide(prefix, depth, level) && known(prefix, depth + 1).count > 0;
        const bool go_on = !possible || visit_below(prefix, depth + 1, visit);
        undo(prefix, depth);
        return go_on;
    };
    if (choices > 0 && in_runs(depth)) {
        for (const Run& run : known(prefix, depth).runs)
            for (std::uint32_t level = run.first; level <= run.last; ++level)
                if (!look(level)) return false;
        return true;
    }
    for (std::uint32_t i = 0; i < std::max(choices, 1U); ++i)
        if (!look(choice(depth, i, choices))) return false;
    return true;
}

template <class Visit>
void FeasibleSet::for_each(const Visit& visit) const {
    if (!finite_) throw UsageError("a space with continuous parameters cannot be listed");
    Prefix prefix = empty_prefix();
    visit_below(prefix, 0, visit);
}

// -------------------------------------------------------------------------------------------------
// by chance

/// A configuration by a number of [0, 1) for each decision (`number_at(depth)`) that leaves a
/// choice.
template <class NumberAt>
FeasibleSet::Prefix FeasibleSet::drawn(const NumberAt& number_at) const {
    Prefix prefix = empty_prefix();
    for (std::size_t depth = 0; depth < depth_end(); ++depth) {
        const std::uint32_t choices = choice_count(prefix, depth);
        const std::size_t i = order_.sequence[depth];
        const bool open = choices > 1 || (choices == 1 && space_.parameters()[i].continuous());
        const Chosen chosen = open ? choose(prefix, depth, choices, number_at(depth))
                                   : Chosen{choice(depth, 0, choices)};
        (void)decide(prefix, depth, chosen.choice);
        if (chosen.choice == real)
            prefix.values[i] = space_.parameters()[i].at_position(chosen.place);
    }
    return prefix;
}

}  // namespace servetune
