// SPDX-License-Identifier: Apache-2.0
#include "traffic_judge.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/student.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

namespace servetune {
namespace {

constexpr double alpha_of_change = 0.01;
constexpr double most_correlation_of_batches = 0.8;  ///< ten say no more of it
constexpr double widest_ratio = 1e6;

/// The mean of some numbers and its interval.
struct MeanInterval {
    double mean = 0;
    double low = 0;
    double high = 0;
};

MeanInterval interval_of(const std::vector<double>& values, double more_error = 0) {
    const auto n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double squares = 0;
    double following = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        squares += (values[i] - mean) * (values[i] - mean);
        if (i > 0) following += (values[i] - mean) * (values[i - 1] - mean);
    }
    const double correlation =
        squares > 0 ? std::clamp(following / squares, 0.0, most_correlation_of_batches) : 0;
    const double effective = n * (1 - correlation) / (1 + correlation);
    const double error = std::sqrt(squares / (n - 1) / effective + more_error * more_error);
    const double reach = student_quantile(alpha_of_change, values.size() - 1) * error;
    return {mean, mean - reach, mean + reach};
}

Likeness judged_interval(const MeanInterval& found, const std::vector<double>& values,
                         double margin) {
    if (found.low > -margin && found.high < margin) return Likeness::same;
    const bool above = found.low > margin;
    if (!above && !(found.high < -margin)) return Likeness::undecided;
    const auto last = std::min(values.size(), TrafficJudge::lasting_batches);
    const bool lasts =
        std::all_of(values.end() - static_cast<std::ptrdiff_t>(last), values.end(),
                    [&](double value) { return above ? value > margin : value < -margin; });
    return lasts ? Likeness::changed : Likeness::undecided;
}

using OfBatch = std::function<std::optional<double>(const ServerWindow&)>;

/// `margin`: of ln(now / study), or without `ratio` of now - study. Gives the values that were
/// compared.
std::vector<double> judge_mean(JudgedTrait& trait, const std::deque<ServerWindow>& batches,
                               const OfBatch& of, double margin, bool ratio = true) {
    std::vector<double> values;
    std::vector<double> seen;
    for (const ServerWindow& batch : batches)
        if (const auto value = of(batch); value && (!ratio || *value > 0)) {
            seen.push_back(*value);
            values.push_back(ratio ? std::log(*value / *trait.study) : *value - *trait.study);
        }
    if (values.empty() && batches.size() >= TrafficJudge::fewest_batches) {
        trait.because = "the page does not have it";
        return values;
    }
    if (!values.empty())
        trait.now =
            std::accumulate(seen.begin(), seen.end(), 0.0) / static_cast<double>(seen.size());
    if (values.size() < TrafficJudge::fewest_batches) {
        trait.likeness = Likeness::undecided;
        trait.because = std::to_string(values.size()) + " of the " +
                        std::to_string(TrafficJudge::fewest_batches) + " batches that it takes";
        return values;
    }
    const MeanInterval found = interval_of(values);
    trait.likeness = judged_interval(found, values, margin);
    const auto shown = [&](double value) {
        return ratio ? std::exp(std::clamp(value, -std::log(widest_ratio), std::log(widest_ratio)))
                     : value;
    };
    trait.low = shown(found.low);
    trait.high = shown(found.high);
    const std::string over = " over " + std::to_string(values.size()) + " batches";
    switch (trait.likeness) {
        case Likeness::same: trait.because = "within the margin" + over; break;
        case Likeness::changed:
            trait.because = "outside the margin" + over + " and in each of the last";
            break;
        default: trait.because = "the interval reaches over the margin" + over; break;
    }
    return values;
}

}  // namespace

void TrafficJudge::add(const ServerWindow& window) {
    seen_seconds_ += window.seconds;
    open_ += window;
    const auto ended = open_.requests();
    const bool full =
        ended ? *ended >= requests_in_batch : open_.counter("generated_tokens").value_or(0) > 0;
    if (!full) return;
    batches_.push_back(std::exchange(open_, {}));
    if (batches_.size() > most_batches) batches_.pop_front();
    if (batches_.size() < fewest_batches) return;
    const ServerWindow all = recent();
    const auto load = expected_.requests_per_second ? all.requests() : all.in_flight();
    if (load)
        most_load_ =
            std::max(most_load_, expected_.requests_per_second ? *load / all.seconds : *load);
}

ServerWindow TrafficJudge::recent() const {
    ServerWindow all;
    for (const ServerWindow& batch : batches_) all += batch;
    return all;
}

JudgedTrait TrafficJudge::load() const {
    const bool by_rate = expected_.requests_per_second.has_value();
    JudgedTrait trait;
    trait.name = by_rate ? "requests per second" : "requests in flight";
    trait.study = by_rate ? expected_.requests_per_second : expected_.in_flight;
    if (!trait.study) {
        trait.because = "the study does not say its load";
        return trait;
    }
    judge_mean(
        trait, batches_,
        [by_rate](const ServerWindow& batch) {
            if (!by_rate) return batch.in_flight();
            const auto requests = batch.requests();
            return requests ? std::optional(*requests / batch.seconds) : std::nullopt;
        },
        std::log1p(load_margin));
    if (trait.likeness != Likeness::changed || *trait.high > 1) return trait;
    const bool whole_day = seen_seconds_ >= less_load_is_change_seconds &&
                           most_load_ * (1 + load_margin) < *trait.study;
    trait.likeness = whole_day ? Likeness::changed : Likeness::less_load;
    trait.because = whole_day ? "the busiest time of a day or more is below the study's load"
                              : "below the study's load, which is for its busy times: a day of "
                                "this would be a change";
    return trait;
}

JudgedTrait TrafficJudge::lengths(const std::string& name, const std::string& histogram,
                                  const ExpectedTraffic::Lengths& study) const {
    JudgedTrait trait;
    trait.name = name;
    trait.study = study.mean;
    if (!study.mean) {
        trait.because = "the study does not say it";
        return trait;
    }
    judge_mean(
        trait, batches_,
        [&](const ServerWindow& batch) {
            const Histogram* seen = batch.histogram(histogram);
            return seen != nullptr ? std::optional(seen->mean()) : std::nullopt;
        },
        std::log1p(margin));
    if (trait.low && study.shape_known && !study.each.empty()) judge_shape(trait, histogram, study);
    return trait;
}

/// A mean that has changed stays so; one that is the same needs a shape that is the same too.
void TrafficJudge::judge_shape(JudgedTrait& trait, const std::string& histogram,
                               const ExpectedTraffic::Lengths& study) const {
    const ServerWindow all = recent();
    const Histogram* seen = all.histogram(histogram);
    if (seen == nullptr || trait.likeness == Likeness::changed) return;
    const ShapeDistance found = shape_distance(*seen, study.each);
    const double reach = std::sqrt(
        (static_cast<double>(found.buckets) * std::numbers::ln2 - std::log(alpha_of_change)) /
        (2 * seen->count));
    const std::string text = "the buckets differ by " + percent_text(found.distance, 0) +
                             " of the requests (+- " + percent_text(reach, 0) + ", margin " +
                             percent_text(shape_margin, 0) + ")";
    bool lasts = true;
    for (std::size_t i = batches_.size() - std::min(batches_.size(), lasting_batches);
         i < batches_.size(); ++i) {
        const Histogram* one = batches_[i].histogram(histogram);
        lasts = lasts && one != nullptr && shape_distance(*one, study.each).distance > shape_margin;
    }
    if (found.distance - reach > shape_margin && lasts) {
        trait.likeness = Likeness::changed;
        trait.because = text;
    } else if (found.distance + reach < shape_margin) {
        trait.because += "; " + text;
    } else if (trait.likeness == Likeness::same) {
        trait.likeness = Likeness::undecided;
        trait.because = "the mean is the same; " + text;
    }
}

JudgedTrait TrafficJudge::hits() const {
    JudgedTrait trait;
    trait.name = "share of prompt tokens from the prefix cache";
    trait.study = expected_.hit_share;
    if (!trait.study) {
        trait.because = "the study did not measure it";
        return trait;
    }
    judge_mean(
        trait, batches_, [](const ServerWindow& batch) { return batch.hit_share(); }, share_margin,
        false);
    return trait;
}

JudgedTrait TrafficJudge::tokens_ratio() const {
    JudgedTrait trait;
    trait.name = "prompt tokens per output token";
    if (!expected_.prompt.mean || !expected_.output.mean) {
        trait.because = "the study does not say it";
        return trait;
    }
    trait.study = *expected_.prompt.mean / *expected_.output.mean;
    judge_mean(
        trait, batches_,
        [](const ServerWindow& batch) -> std::optional<double> {
            const auto prompts = batch.counter(batch.counters.contains("prefix_queried_tokens")
                                                   ? "prefix_queried_tokens"
                                                   : "prompt_tokens");
            const auto outputs = batch.counter("generated_tokens");
            return prompts && outputs && *outputs > 0 ? std::optional(*prompts / *outputs)
                                                      : std::nullopt;
        },
        std::log1p(margin));
    return trait;
}

std::vector<JudgedTrait> TrafficJudge::traffic() const {
    std::vector<JudgedTrait> result{
        load(), lengths("prompt tokens", "request_prompt_tokens", expected_.prompt),
        lengths("output tokens", "request_generated_tokens", expected_.output), hits()};
    const bool says_lengths =
        batches_.empty() || batches_.back().histogram("request_prompt_tokens") != nullptr;
    if (!says_lengths) result.push_back(tokens_ratio());
    return result;
}

JudgedTrait TrafficJudge::speed() const {
    JudgedTrait trait;
    trait.name = "seconds per output token";
    trait.study = expected_.per_token_seconds;
    if (!trait.study) {
        trait.because = "the study did not measure it";
        return trait;
    }
    for (const JudgedTrait& one : traffic())
        if (one.likeness == Likeness::changed) {
            trait.because =
                "the traffic is another one (" + one.name + "), so its speed cannot be compared";
            return trait;
        }
    const std::vector<double> values = judge_mean(
        trait, batches_,
        [](const ServerWindow& batch) {
            const Histogram* seen = batch.histogram("per_token_seconds");
            if (seen == nullptr) seen = batch.histogram("token_gap_seconds");
            return seen != nullptr ? std::optional(seen->mean()) : std::nullopt;
        },
        std::log1p(margin));
    if (!trait.low) return trait;
    const MeanInterval found = interval_of(values, expected_.per_token_error);
    trait.low = std::exp(found.low);
    trait.high = std::exp(found.high);
    trait.likeness = judged_interval(found, values, std::log1p(margin));
    if (trait.likeness == Likeness::changed && *trait.high < 1) {
        trait.likeness = Likeness::same;
        trait.because = "faster than the study measured";
    }
    return trait;
}

Likeness likeness_of(const std::vector<JudgedTrait>& traits) {
    const auto any = [&](Likeness likeness) {
        return std::any_of(traits.begin(), traits.end(),
                           [&](const JudgedTrait& trait) { return trait.likeness == likeness; });
    };
    if (any(Likeness::changed)) return Likeness::changed;
    if (any(Likeness::undecided)) return Likeness::undecided;
    return any(Likeness::same) || any(Likeness::less_load) ? Likeness::same : Likeness::undecided;
}

ShapeDistance shape_distance(const Histogram& seen, const std::vector<double>& lengths) {
    constexpr int steps = 12;  // factors of 1.9 % between the margin's ends
    ShapeDistance best{2, 0};
    for (int step = -steps; step <= steps; ++step) {
        const double factor = std::exp(std::log1p(TrafficJudge::margin) * step / steps);
        ShapeDistance one;
        auto begin = lengths.begin();
        for (std::size_t i = 0; i < seen.counts.size(); ++i) {
            const auto end = i < seen.bounds.size()
                                 ? std::upper_bound(begin, lengths.end(), seen.bounds[i] / factor)
                                 : lengths.end();
            const double expected =
                static_cast<double>(end - begin) / static_cast<double>(lengths.size());
            one.distance += std::abs(seen.counts[i] / seen.count - expected) / 2;
            one.buckets += seen.counts[i] > 0 || expected > 0 ? 1 : 0;
            begin = end;
        }
        if (one.distance < best.distance) best = one;
    }
    return best;
}

}  // namespace servetune
