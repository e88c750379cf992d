// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace servetune {

/// Which results of a document are of one load and can be held against each other
/// (`audit_together`): for each the number of its group, from 0. Of one load are those under one
/// label that is no heading, where their lengths, requests in flight and rates may be the same;
/// else, under one heading, those that sent as many requests with the same prompts in the same way.
/// A run that lost requests stays with those that it was sent like.
std::vector<std::size_t> comparable_runs(std::span<const PublishedResult> results);

}  // namespace servetune
