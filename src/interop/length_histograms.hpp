// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/rng.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

namespace servetune {

/// How many requests had which lengths, as a Prometheus server answers `/api/v1/query_range` for
/// the buckets of histograms: names with `prompt_tokens` or `input_tokens`, and with
/// `generation_tokens`, `completion_tokens` or `output_tokens`. All series are added up; a counter
/// that falls began anew.
class LengthHistograms {
public:
    /// Whether a file is such an answer; only its beginning is read.
    static bool is_one(const std::filesystem::path& file);

    /// Adds what a file has. Throws IoError; ParseError for one without such buckets.
    void add(const std::filesystem::path& file);

    [[nodiscard]] bool has_inputs() const { return !inputs_.empty(); }
    [[nodiscard]] bool has_outputs() const { return !outputs_.empty(); }

    /// Restricts the draws to the buckets' counts between two times, where there are any.
    void restrict_to(double from, double to);
    /// A length: of a bucket by its count, within it every ratio alike.
    std::int64_t input(Rng& rng) const { return draw(inputs_, rng); }
    std::int64_t output(Rng& rng) const { return draw(outputs_, rng); }

    /// Requests that ended in each step: its end -> length of the step in seconds, how many.
    [[nodiscard]] std::map<double, std::pair<double, double>> arrivals() const;

private:
    /// Upper bound -> time -> how many requests were added up to this bound in the step that ends
    /// then.
    using Histogram = std::map<double, std::map<double, double>>;

    [[nodiscard]] std::int64_t draw(const Histogram& histogram, Rng& rng) const;

    Histogram inputs_{}, outputs_{};
    std::map<double, double> steps_{};  ///< end -> length
    double from_ = 0, to_ = 1e18;
};

}  // namespace servetune
