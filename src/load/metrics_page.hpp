// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace servetune {

// Figures of a page in Prometheus' text format (version 0.0.4), which any server may have written:
// a line that is no sample is passed over, and a metric of which one sample is no finite number
// from 0 on is absent. No line is read twice as deep as it is long, and nothing recurses.

/// The samples of one metric over all of its labels (models, engines, ranks).
struct MetricSum {
    double sum = 0;
    std::size_t series = 0;  ///< how many were added

    [[nodiscard]] double mean() const { return sum / static_cast<double>(series); }
};

/// Nothing when the page does not have it, or has a number that cannot be.
std::optional<MetricSum> samples_in(std::string_view page, std::string_view metric);

/// `samples_in`'s sum.
std::optional<double> metric_in(std::string_view page, std::string_view metric);

/// How many observations fell between which bounds, since the server began or within a window.
struct Histogram {
    std::vector<double> bounds{};  ///< rising; bucket i holds values in (bounds[i - 1], bounds[i]]
    std::vector<double> counts{};  ///< of each bucket; one more than bounds: above the last
    double count = 0;
    double sum = 0;

    [[nodiscard]] double mean() const { return sum / count; }
    Histogram& operator+=(const Histogram& more);  ///< of the same bounds; else both become nothing
};

/// The sum over all labels but `le`. Nothing when the page lacks it, when the series have different
/// buckets, or when counts fall from a bucket to a wider one.
std::optional<Histogram> histogram_in(std::string_view page, std::string_view metric);

/// What was added between two readings; nothing when a count has fallen (the server restarted) or
/// the buckets changed.
std::optional<Histogram> difference(const Histogram& after, const Histogram& before);

/// A quantile as Prometheus estimates it, linear within the bucket that it falls in, and that
/// bucket: all that is known.
struct BucketQuantile {
    double value = 0;
    double low = 0;
    std::optional<double> high{};  ///< nothing: above the last bound, which is then `value`
};
/// 0 < q < 1; nothing without an observation.
std::optional<BucketQuantile> quantile_of(const Histogram& histogram, double q);

}  // namespace servetune
