// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"

#include <algorithm>
#include <cstddef>

namespace servetune {

/// How many parameters `configuration` sets away from the default configuration; what its command
/// has more than the default's.
inline std::size_t settings_beyond_default(const SearchSpace& space,
                                           const Configuration& configuration) {
    return static_cast<std::size_t>(std::count_if(
        configuration.entries().begin(), configuration.entries().end(),
        [&](const auto& entry) { return entry.second != space.at(entry.first).default_value; }));
}

/// Whether `small` can be had from `large` by dropping settings: every setting of it is one of
/// `large`'s or a default.
inline bool is_reduction_of(const SearchSpace& space, const Configuration& small,
                            const Configuration& large) {
    return std::all_of(small.entries().begin(), small.entries().end(),
                       [&large, &space](const auto& entry) {
                           const Value* value = large.find(entry.first);
                           return (value != nullptr && *value == entry.second) ||
                                  entry.second == space.at(entry.first).default_value;
                       });
}

}  // namespace servetune
