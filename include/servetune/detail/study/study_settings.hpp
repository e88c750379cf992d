// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/parameter.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace servetune {

/// A whole study in one place, for `Study(StudySettings)`.
struct StudySettings {
    std::vector<Parameter> parameters;
    std::vector<std::string> rules{};  ///< each must hold, such as `tokens >= seqs` (`require`)
    std::string maximize{};  ///< the metric to maximize; exactly one of this and `minimize`
    std::string minimize{};  ///< the metric to minimize
    std::vector<std::string> limits{};  ///< such as `ttft_p95_ms <= 200` (`Limit::parse`)
    std::size_t trials = 30;            ///< Budget::trials
    std::string journal{};  ///< folder of the journal, made when missing; empty: in memory
    std::uint64_t seed = 0;
};

}  // namespace servetune
