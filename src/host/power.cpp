// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/power.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/trial/metric_key.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace servetune {
namespace {

constexpr std::string_view mean_power = "power_mean_watts";
constexpr std::string_view peak_power = "power_peak_watts";

/// Tokens a second -> joules per token.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> energies{{
    {"output_tokens_per_second", "joules_per_output_token"},
    {"total_tokens_per_second", "joules_per_total_token"},
}};

constexpr std::size_t fewest_samples = 5;
constexpr double least_covered = 0.8;
constexpr double reach =
    0.75;  ///< of a sample, in median distances: half of one and a half, for samples that come late

double median_distance(std::span<const PowerSample> samples) {
    std::vector<double> distances;
    for (std::size_t i = 1; i < samples.size(); ++i)
        distances.push_back(samples[i].at_seconds - samples[i - 1].at_seconds);
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    return *middle;
}

double error_of_mean(std::span<const PowerSample> samples) {
    const auto n = static_cast<double>(samples.size());
    double mean = 0;
    for (const PowerSample& one : samples) mean += one.watts / n;
    double squares = 0;
    double products = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        squares += (samples[i].watts - mean) * (samples[i].watts - mean);
        if (i > 0) products += (samples[i].watts - mean) * (samples[i - 1].watts - mean);
    }
    if (!(squares > 0)) return 0;
    const double r = std::clamp(products / squares, 0.0, 1.0);
    const double independent = std::max(n * (1 - r) / (1 + r), 1.0);
    return std::sqrt(squares / (n - 1) / independent);
}

}  // namespace

std::variant<PowerUse, std::string> power_between(std::span<const PowerSample> samples,
                                                  double begin_seconds, double end_seconds) {
    const auto first = std::find_if(samples.begin(), samples.end(), [&](const PowerSample& one) {
        return one.at_seconds >= begin_seconds;
    });
    const auto last = std::find_if(
        first, samples.end(), [&](const PowerSample& one) { return one.at_seconds > end_seconds; });
    const std::span<const PowerSample> inside(first, last);
    const double seconds = end_seconds - begin_seconds;
    const std::string told =
        std::to_string(inside.size()) + " samples of the power in " + fixed_text(seconds, 1) + " s";
    if (inside.size() < fewest_samples)
        return told + ", " + std::to_string(fewest_samples) + " wanted";
    const double most = reach * median_distance(inside);
    double covered = 0;
    double joules = 0;
    PowerUse result;
    for (std::size_t i = 0; i < inside.size(); ++i) {
        const double at = inside[i].at_seconds;
        const double before = i == 0 ? at - begin_seconds : (at - inside[i - 1].at_seconds) / 2;
        const double after =
            i + 1 == inside.size() ? end_seconds - at : (inside[i + 1].at_seconds - at) / 2;
        const double stands_for = std::min(before, most) + std::min(after, most);
        covered += stands_for;
        joules += stands_for * inside[i].watts;
        result.peak_watts = std::max(result.peak_watts, inside[i].watts);
    }
    if (covered < least_covered * seconds)
        return told + " cover " + percent_text(covered / seconds, 0) + " of it, " +
               percent_text(least_covered, 0) + " wanted";
    result.mean_watts = std::min(joules / covered, result.peak_watts);  // sums are rounded
    result.standard_error_watts = error_of_mean(inside);
    result.samples = inside.size();
    return result;
}

void add_power(Metrics& metrics, const PowerUse& power) {
    metrics[std::string(mean_power)] = {power.mean_watts, power.standard_error_watts};
    metrics[std::string(peak_power)] = {power.peak_watts};
    if (!(power.mean_watts > 0)) return;
    for (const auto& [rate, energy] : energies) {
        const auto tokens = metrics.find(rate);
        if (tokens == metrics.end() || !(tokens->second.value > 0)) continue;
        const double joules = power.mean_watts / tokens->second.value;
        const double of_power = power.standard_error_watts / power.mean_watts;
        const double of_rate = tokens->second.standard_error.value_or(0) / tokens->second.value;
        metrics[std::string(energy)] = {joules, joules * std::hypot(of_power, of_rate)};
    }
}

std::vector<std::string> power_metrics() {
    std::vector<std::string> result{std::string(mean_power), std::string(peak_power)};
    for (const auto& [rate, energy] : energies) result.emplace_back(energy);
    return result;
}

bool is_power_metric(std::string_view metric) {
    const std::vector<std::string> all = power_metrics();
    return std::find(all.begin(), all.end(), MetricKey::of(metric).name) != all.end();
}

}  // namespace servetune
