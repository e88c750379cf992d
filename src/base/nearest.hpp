// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
/// (optimal string alignment; Damerau 1964). O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known names with their distances, nearest to `wanted` first (ties in the order given). The
/// distance to a part of a name counts too: `h1000` is one letter from h100-sxm.
std::vector<std::pair<std::size_t, std::string>> by_distance(std::string_view wanted,
                                                             std::span<const std::string> known);

/// The known names, nearest to `wanted` first: for "unknown key" messages.
inline std::vector<std::string> nearest_first(std::string_view wanted,
                                              std::span<const std::string> known) {
    std::vector<std::string> result;
    for (auto& [distance, name] : by_distance(wanted, known)) result.push_back(std::move(name));
    return result;
}

/// `a, b, c`, at most `most` names and then how many more there are.
inline std::string listed(std::span<const std::string> names, std::size_t most = 12) {
    std::string result;
    for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
        result += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > most) result += ", ... (" + std::to_string(names.size() - most) + " more)";
    return result;
}

/// `; nearest: a, b, c`: at most three known names that begin with `wanted` or differ from it in a
/// third of its letters or fewer. Empty: none is near.
std::string nearest_text(std::string_view wanted, std::span<const std::string> known);

}  // namespace servetune
