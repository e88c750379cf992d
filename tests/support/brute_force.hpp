// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"

#include <set>
#include <utility>
#include <vector>

namespace servetune::test {

/// Every configuration by brute force: all values of all parameters, made canonical.
inline std::set<Configuration> by_brute_force(const SearchSpace& space) {
    std::vector<Assignment> all{{}};
    for (const Parameter& parameter : space.parameters()) {
        std::vector<Assignment> next;
        for (const Assignment& assignment : all)
            for (std::size_t level = 0; level < parameter.level_count(); ++level) {
                next.push_back(assignment);
                next.back()[parameter.name] = parameter.level(level);
            }
        all = std::move(next);
    }
    std::set<Configuration> result;
    for (const Assignment& assignment : all)
        if (Configuration made = space.completed(assignment); space.feasible(made))
            result.insert(std::move(made));
    return result;
}

}  // namespace servetune::test
