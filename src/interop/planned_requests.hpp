// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"

#include <optional>
#include <set>
#include <string_view>

namespace servetune {

/// The numbers of requests that commands and settings of clients name in a document (`--num-prompts
/// 1000`): requests that were lost are in no block.
class PlannedRequests {
public:
    /// The text between the block before and this one.
    void read(std::string_view between);
    /// How many were planned of a run with so many successes; nothing where the text names that
    /// number, or where the number may have been planned itself. One number alone in the text read
    /// last is this block's.
    [[nodiscard]] std::optional<double> of(const BenchmarkResult& result) const;

private:
    std::set<double> all_, nearest_;
};

}  // namespace servetune
