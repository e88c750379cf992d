// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "study_file/seen_flags.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace servetune {

/// One result with its command read.
struct SeenRow {
    std::size_t index = 0;  ///< of the results
    const Engine* engine = nullptr;
    SeenFlags flags{};
    std::string variant{};  ///< of the checkpoint; empty: the model itself
};

/// The lines below `space:` of a study over these results: each flag that some command sets, with
/// the values that were seen and the default where a command leaves it out. `checkpoints`: those of
/// other quantizations, by their names. What is not in an engine file is declared, and said in
/// `remarks`.
std::string space_of_rows(const std::vector<SeenRow>& all, const std::map<std::string, std::string>& checkpoints,
                          std::vector<std::string>& remarks, const SeenRow* start = nullptr);

}  // namespace servetune
