// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/rng.hpp"

#include <string>

namespace servetune {

/// The fewest changes that are found, from what can be drawn, that make the default configuration
/// feasible. Throws SpaceError where nothing is.
inline Assignment feasible_changes(const SearchSpace& space) {
    constexpr int draws = 50;
    const FeasibleSet feasible(space);
    const Configuration usual = space.default_configuration();
    const auto is_enough = [&](const Assignment& changes) {
        return space.feasible(space.completed(changes));
    };
    Assignment best;
    Rng rng(1);
    for (int i = 0; i < draws; ++i) {
        Assignment changes;
        const Configuration drawn = feasible.sample(rng);
        for (const auto& [name, value] : drawn.entries())
            if (const Value* before = usual.find(name); before == nullptr || *before != value)
                changes[name] = value;
        for (const auto& [name, value] : Assignment(changes)) {
            Assignment other = changes;
            other.erase(name);
            if (!is_enough(other)) {  // perhaps in fewer digits
                const auto* real = std::get_if<double>(&value);
                other = changes;
                if (real != nullptr) other[name] = real_of(significant_text(*real, 2)).value_or(0);
                if (!space.at(name).contains(other[name]) || !is_enough(other)) continue;
            }
            changes = std::move(other);
        }
        if (best.empty() || changes.size() < best.size()) best = std::move(changes);
    }
    return best;
}

}  // namespace servetune
