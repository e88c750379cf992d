// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace servetune {

/// What a decision diagram (feasible_set.hpp) remembers of a half made configuration: the depth and
/// the state of its open rules.
using DiagramKey = std::vector<std::uint32_t>;

struct DiagramKeyHash {
    std::size_t operator()(const DiagramKey& key) const {
        std::uint64_t hash = key.size();
        for (const std::uint32_t word : key) hash = mix64(hash ^ word);
        return static_cast<std::size_t>(hash);
    }
};

}  // namespace servetune
