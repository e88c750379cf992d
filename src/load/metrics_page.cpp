// SPDX-License-Identifier: Apache-2.0
#include "metrics_page.hpp"

#include "servetune/value.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

namespace servetune {
namespace {

constexpr std::size_t most_buckets = 1000;
constexpr std::string_view blanks_in_a_line = " \t\r";

struct PageSample {
    std::string_view name{};
    std::string_view le{};  ///< as it is written; empty: it has none
    std::optional<double> value{};
};

std::string_view without_blanks_before(std::string_view text) {
    return text.substr(std::min(text.find_first_not_of(blanks_in_a_line), text.size()));
}

/// Reads `{a="b",le="c"}` from the front of `rest`; false: it is not closed, or is something else.
bool read_labels(std::string_view& rest, std::string_view& le) {
    rest.remove_prefix(1);
    for (;;) {
        rest = without_blanks_before(rest);
        if (rest.empty()) return false;
        if (rest.front() == ',') {
            rest.remove_prefix(1);
            continue;
        }
        if (rest.front() == '}') {
            rest.remove_prefix(1);
            return true;
        }
        const std::size_t equals = rest.find('=');
        if (equals == std::string_view::npos) return false;
        std::string_view label = rest.substr(0, equals);
        label = label.substr(0, label.find_last_not_of(blanks_in_a_line) + 1);
        rest = without_blanks_before(rest.substr(equals + 1));
        if (rest.empty() || rest.front() != '"') return false;
        std::size_t end = 1;
        while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
        if (end >= rest.size()) return false;
        if (label == "le") le = rest.substr(1, end - 1);
        rest.remove_prefix(end + 1);
    }
}

/// Nothing for a comment, an empty line, and what is no sample.
std::optional<PageSample> sample_of(std::string_view line) {
    line = without_blanks_before(line);
    if (line.empty() || line.front() == '#') return std::nullopt;
    PageSample sample;
    const std::size_t name_end = std::min(line.find_first_of("{ \t"), line.size());
    sample.name = line.substr(0, name_end);
    std::string_view rest = without_blanks_before(line.substr(name_end));
    if (!rest.empty() && rest.front() == '{' && !read_labels(rest, sample.le)) return std::nullopt;
    rest = without_blanks_before(rest);
    sample.value =
        real_of(rest.substr(0, rest.find_first_of(blanks_in_a_line)));  // a time stamp may follow
    return sample;
}

/// Every sample whose name begins with `metric`. Lines of other names are not read.
void for_samples(std::string_view page, std::string_view metric,
                 const std::function<void(const PageSample&)>& visit) {
    while (!page.empty()) {
        const std::string_view line = page.substr(0, page.find('\n'));
        page.remove_prefix(std::min(page.size(), line.size() + 1));
        if (!without_blanks_before(line).starts_with(metric)) continue;
        if (const auto sample = sample_of(line)) visit(*sample);
    }
}

/// Past the largest one, additions of 1 are lost, and no server has counted so far.
bool is_count(const std::optional<double>& value) {
    constexpr double largest = 9'007'199'254'740'992;  // 2^53
    return value && *value >= 0 && *value <= largest;
}

}  // namespace

std::optional<MetricSum> samples_in(std::string_view page, std::string_view metric) {
    MetricSum result;
    bool possible = true;
    for_samples(page, metric, [&](const PageSample& sample) {
        if (sample.name != metric) return;
        if (!is_count(sample.value)) {
            possible = false;
            return;
        }
        result.sum += *sample.value;
        ++result.series;
    });
    if (!possible || result.series == 0 || !std::isfinite(result.sum)) return std::nullopt;
    return result;
}

std::optional<double> metric_in(std::string_view page, std::string_view metric) {
    const auto found = samples_in(page, metric);
    return found ? std::optional(found->sum) : std::nullopt;
}

Histogram& Histogram::operator+=(const Histogram& more) {
    if (bounds.empty() && counts.empty()) return *this = more;
    if (bounds != more.bounds) return *this = {};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += more.counts[i];
    count += more.count;
    sum += more.sum;
    return *this;
}

std::optional<Histogram> histogram_in(std::string_view page, std::string_view metric) {
    const std::string name(metric);
    const std::string buckets = name + "_bucket";
    struct Bucket {
        double cumulative = 0;
        std::size_t series = 0;
    };
    std::map<double, Bucket> by_bound;
    std::optional<double> sum;
    std::optional<double> count;
    bool possible = true;
    for_samples(page, metric, [&](const PageSample& sample) {
        const bool is_bucket = sample.name == buckets;
        const bool is_sum = sample.name == name + "_sum";
        if (!is_bucket && !is_sum && sample.name != name + "_count") return;
        if (!is_count(sample.value)) {
            possible = false;
            return;
        }
        if (!is_bucket) {
            std::optional<double>& total = is_sum ? sum : count;
            total = total.value_or(0) + *sample.value;
            return;
        }
        const bool last = sample.le == "+Inf" || sample.le == "Inf";
        const auto bound =
            last ? std::optional(std::numeric_limits<double>::infinity()) : real_of(sample.le);
        if (!bound || (by_bound.size() >= most_buckets && !by_bound.contains(*bound))) {
            possible = false;
            return;
        }
        Bucket& bucket = by_bound[*bound];
        bucket.cumulative += *sample.value;
        ++bucket.series;
    });
    if (!possible || !sum || !count || by_bound.size() < 2 || !std::isinf(by_bound.rbegin()->first))
        return std::nullopt;
    Histogram result;
    result.count = *count;
    result.sum = *sum;
    double before = 0;
    for (const auto& [bound, bucket] : by_bound) {
        if (bucket.series != by_bound.begin()->second.series || bucket.cumulative < before)
            return std::nullopt;
        if (std::isfinite(bound)) result.bounds.push_back(bound);
        result.counts.push_back(bucket.cumulative - before);
        before = bucket.cumulative;
    }
    if (!(std::abs(before - result.count) <= 1e-9 * result.count) || !std::isfinite(result.sum))
        return std::nullopt;
    return result;
}

std::optional<Histogram> difference(const Histogram& after, const Histogram& before) {
    if (after.bounds != before.bounds || after.count < before.count || after.sum < before.sum)
        return std::nullopt;
    Histogram result = after;
    result.count -= before.count;
    result.sum -= before.sum;
    for (std::size_t i = 0; i < result.counts.size(); ++i) {
        result.counts[i] -= before.counts[i];
        if (result.counts[i] < 0) return std::nullopt;
    }
    return result;
}

std::optional<BucketQuantile> quantile_of(const Histogram& histogram, double q) {
    if (!(histogram.count > 0)) return std::nullopt;
    const double wanted = q * histogram.count;
    double below = 0;
    double low = 0;
    for (std::size_t i = 0; i < histogram.bounds.size(); ++i) {
        const double here = histogram.counts[i];
        if (here > 0 && below + here >= wanted)
            return BucketQuantile{low + (histogram.bounds[i] - low) * (wanted - below) / here, low,
                                  histogram.bounds[i]};
        below += here;
        low = histogram.bounds[i];
    }
    return BucketQuantile{low, low, std::nullopt};
}

}  // namespace servetune
