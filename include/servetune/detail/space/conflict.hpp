// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// A set of constraints that cannot be met together though any one less could (deletion filter), as
/// text. `is_empty(space)`: whether a space has no feasible configuration.
template <class IsEmpty>
std::string conflict_text(const SearchSpace& space, const IsEmpty& is_empty) {
    std::vector<Constraint> needed = space.constraints();
    for (std::size_t i = needed.size(); i-- > 0;) {
        std::vector<Constraint> rest = needed;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        if (is_empty(SearchSpace(space.parameters(), rest))) needed = std::move(rest);
    }
    std::string result;
    for (const Constraint& constraint : needed)
        result.append(result.empty() ? "'" : " and '").append(text_of(constraint)).append("'") +=
            reason(constraint).empty() ? "" : " (" + reason(constraint) + ")";
    return result;
}

}  // namespace servetune
