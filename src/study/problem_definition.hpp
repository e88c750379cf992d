// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/objective.hpp"
#include "servetune/search_space.hpp"

namespace servetune {

/// Adds a space and an objective to the definition of a study, which its journal keeps
/// (StudyIdentity): `space.NAME`, `constraints[I]`, `objective`, `objective.limits[I]`.
void add_definition(const SearchSpace& space, const Objective& objective,
                    std::map<std::string, std::string>& definition);

}  // namespace servetune
