// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/detail/interop/published.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// A result with the configuration and the workload that its document says.
struct PlacedResult {
    const PublishedResult* source;
    std::string workload;
    Configuration configuration;
};

/// The rates by which runs are compared, the most telling first.
using RateField = std::optional<double> BenchmarkResult::*;
inline constexpr std::array<std::pair<const char*, RateField>, 3> leading_rates{
    {{"total_tokens_per_second", &BenchmarkResult::total_tokens_per_second},
     {"output_tokens_per_second", &BenchmarkResult::output_tokens_per_second},
     {"requests_per_second", &BenchmarkResult::requests_per_second}}};

/// `blocks 1, 2 and 5`; `block 1`.
std::string numbered(const std::string& what, const std::vector<std::size_t>& which);

/// Results of one configuration and one workload are its repeats, and the mean of them counts,
/// unless they differ by more than noise does: then they are of different things (a patch, a
/// deployment, a load) that nothing in the document tells apart. Why such a result is no repeat,
/// one text a result; empty: it is alone or agrees.
///
/// They differ where the largest of their leading rates (of all tokens, of output tokens, of
/// requests) is more than `most_between_repeats` times the smallest.
std::vector<std::string> why_no_repeat(const std::vector<PlacedResult>& results);

/// What the document calls repeats differently (`deployment`: base, kvcache), one remark a group of
/// repeats.
std::vector<std::string> what_repeats_differ_in(const std::vector<PlacedResult>& results);

/// Repeats that were measured with care differ by 0.5 to 3 %, the worst published ones of one
/// command by 16 %; a choice that is worth a patch or a deployment of its own moves more.
constexpr double most_between_repeats = 1.25;

}  // namespace servetune
