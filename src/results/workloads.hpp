// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/result_file.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// The rates by which runs are compared, the most telling first.
using RateField = std::optional<double> BenchmarkResult::*;
inline constexpr std::array<std::pair<const char*, RateField>, 3> leading_rates{
    {{"total_tokens_per_second", &BenchmarkResult::total_tokens_per_second},
     {"output_tokens_per_second", &BenchmarkResult::output_tokens_per_second},
     {"requests_per_second", &BenchmarkResult::requests_per_second}}};

/// `blocks 1, 2 and 5`; `block 1`.
std::string numbered(const std::string& what, const std::vector<std::size_t>& which);

/// The work that a result's figures tell of, where they do.
struct Work {
    std::optional<double> input_tokens, output_tokens;  ///< of a request, on average
    std::optional<double> in_flight, rate;              ///< as they were asked for

    explicit Work(const PublishedResult& published);
    /// Prompts of one workload differ by their draw and by the template around them, answers by
    /// where the model ends them. What one of them does not say may be the same.
    [[nodiscard]] bool same(const Work& other) const;
    /// In flight and rate alone.
    [[nodiscard]] bool same_load(const Work& other) const;
    /// The same, and what one says of the load the other says too.
    [[nodiscard]] bool alike(const Work& other) const;
    [[nodiscard]] std::string text() const;
};

/// A number for each result: those with one number were measured under one load, so what one of
/// them says can be held against the others. Results with one label are, where it names one load;
/// without such a label those that sent as many requests with as many prompt tokens in the same
/// way.
std::vector<std::size_t> comparable_runs(std::span<const PublishedResult> results);

/// A result with the configuration and the workload that its file says.
struct PlacedResult {
    const PublishedResult* source;
    std::string workload;
    Configuration configuration;
};

/// Results of one configuration and one workload are its repeats, and their mean counts, unless
/// they differ by more than noise does: then something that no file says tells them apart. Why such
/// a result is no repeat, one text a result; empty: it is alone or agrees.
///
/// They differ where the largest of their leading rates is more than `most_between_repeats` times
/// the smallest. Repeats that were measured with care differ by 0.5 to 3 %, the worst published
/// ones of one command by 16 %.
std::vector<std::string> why_no_repeat(const std::vector<PlacedResult>& results);
constexpr double most_between_repeats = 1.25;

}  // namespace servetune
