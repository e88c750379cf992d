// SPDX-License-Identifier: Apache-2.0
#include "per_device.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/outcome.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace servetune {
namespace {

constexpr std::array<std::string_view, 6> rates{
    "requests_per_second",     "goodput_requests_per_second", "sustained_requests_per_second",
    "input_tokens_per_second", "output_tokens_per_second",    "total_tokens_per_second"};
constexpr std::string_view per_gpu = "_per_gpu";

/// Tokens a second -> what a million of them costs.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> prices{{
    {"input_tokens_per_second", "usd_per_million_input_tokens"},
    {"output_tokens_per_second", "usd_per_million_output_tokens"},
    {"total_tokens_per_second", "usd_per_million_tokens"},
}};

}  // namespace

bool grows_with_devices(std::string_view metric) {
    return contains(rates, MetricKey::of(metric).name);
}

std::string per_device(std::string_view metric) {
    const auto [name, workload] = MetricKey::of(metric);
    return MetricKey{std::string(name) + std::string(per_gpu), workload}.text();
}

void add_per_device(Metrics& metrics, std::int64_t devices,
                    std::optional<double> usd_per_device_hour) {
    const auto count = double(std::max<std::int64_t>(devices, 1));
    Metrics added;
    for (const auto& [name, metric] : metrics) {
        const auto [plain, workload] = MetricKey::of(name);
        if (!contains(rates, plain)) continue;
        Metric one = metric;
        one.value /= count;
        if (one.standard_error) *one.standard_error /= count;
        added[per_device(name)] = one;
        const auto price =
            find_if(prices, [rate = plain](const auto& row) { return row.first == rate; });
        if (!usd_per_device_hour || price == prices.end() || !(metric.value > 0)) continue;
        constexpr double seconds_of_an_hour = 3600;
        Metric cost = metric;
        cost.value = *usd_per_device_hour * count / seconds_of_an_hour / metric.value * 1e6;
        if (cost.standard_error)
            cost.standard_error = *metric.standard_error / metric.value * cost.value;
        added[MetricKey{price->second, workload}.text()] = cost;
    }
    metrics.insert(added.begin(), added.end());
}

std::vector<std::string> per_device_metrics(bool priced) {
    std::vector<std::string> result;
    for (const std::string_view rate : rates)
        result.push_back(std::string(rate) + std::string(per_gpu));
    if (!priced) return result;
    for (const auto& [rate, price] : prices) result.emplace_back(price);
    return result;
}

}  // namespace servetune
