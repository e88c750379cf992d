// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// The work that a block's figures tell of, where they do.
struct Work {
    std::optional<double> input_tokens, output_tokens;  ///< of a request, on average
    std::optional<double> in_flight, rate;              ///< as they were asked for

    explicit Work(const BenchmarkResult& result);
    explicit Work(const PublishedResult& published);
    /// Prompts of one workload differ by their draw and by the template around them, answers by
    /// where the model ends them. What one of them does not say may be the same.
    [[nodiscard]] bool same(const Work& other) const;
    /// In flight and rate alone.
    [[nodiscard]] bool same_load(const Work& other) const;
    [[nodiscard]] std::string text() const;
};

/// Blocks that seem to be of one workload.
struct WorkloadGroup {
    std::string name;                 ///< for a study: lower case, digits and _
    std::vector<std::string> labels;  ///< what documents call it
    std::vector<std::size_t> blocks;  ///< indexes into the results
};

/// Sorts results into workloads: those with one label above them (a profile, a comment, a list
/// item; not headings, which name configurations as often) and alike work, then those alike in work
/// and load to one of these, then the rest among each other. A run that lost requests did other
/// work than its label says; it stays with the label. In the order of the first blocks; results
/// without figures (crashes) are in none.
std::vector<WorkloadGroup> workload_groups(const std::vector<PublishedResult>& results);

}  // namespace servetune
