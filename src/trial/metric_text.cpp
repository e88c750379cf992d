// SPDX-License-Identifier: Apache-2.0
#include "trial/metric_text.hpp"

namespace servetune {

std::string metric_of_word(std::string_view word) {
    auto [rest, workload] = MetricKey::of(word);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> rates{{
        {"throughput", "total_tokens_per_second"},
        {"tokens_per_second", "total_tokens_per_second"},
        {"output_throughput", "output_tokens_per_second"},
        {"total_throughput", "total_tokens_per_second"},
        {"total_token_throughput", "total_tokens_per_second"},
        {"input_throughput", "input_tokens_per_second"},
        {"request_throughput", "requests_per_second"},
    }};
    for (const auto& [known, metric] : rates)
        if (rest == known) return MetricKey{metric, workload}.text();
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> times{{
        {"ttft", "time_to_first_token"},
        {"tpot", "time_per_output_token"},
        {"itl", "inter_token_latency"},
        {"e2el", "latency"},
        {"e2e_latency", "latency"},
        {"time_to_first_token", "time_to_first_token"},
        {"time_per_output_token", "time_per_output_token"},
        {"inter_token_latency", "inter_token_latency"},
        {"latency", "latency"},
    }};
    constexpr std::array<std::pair<std::string_view, std::string_view>, 7> statistics{{
        {"mean", "mean"},
        {"avg", "mean"},
        {"median", "p50"},
        {"p50", "p50"},
        {"p90", "p90"},
        {"p95", "p95"},
        {"p99", "p99"},
    }};
    for (const std::string_view unit : {"_ms", "_s", "_seconds"})
        if (rest.ends_with(unit)) {
            rest.remove_suffix(unit.size());
            break;
        }
    for (const auto& [known, time] : times) {
        std::string_view statistic = "mean";
        for (const auto& [called, one] : statistics)
            if (rest == std::string(known) + "_" + std::string(called) ||
                rest == std::string(called) + "_" + std::string(known)) {
                rest = known;
                statistic = one;
            }
        if (rest == known)
            return MetricKey{std::string(time) + "_" + std::string(statistic) + "_seconds",
                             workload}
                .text();
    }
    return std::string(word);
}

std::optional<double> bound_of_text(std::string_view text, std::string_view metric,
                                    bool in_milliseconds) {
    struct Unit {
        std::string_view called;
        double factor;
        double divisor;  // 500 / 1000 is 0.5, 500 x 0.001 need not be
        bool of_time;
    };
    constexpr std::array<Unit, 4> units{
        {{"ms", 1, 1000, true}, {"min", 60, 1, true}, {"s", 1, 1, true}, {"%", 1, 100, false}}};
    const std::string_view name = MetricKey::of(metric).name;
    double factor = 1;
    double divisor = in_milliseconds ? 1000 : 1;
    for (const Unit& unit : units)
        if (text.ends_with(unit.called)) {
            const bool fits = unit.of_time ? name.ends_with("_seconds")
                                           : name.ends_with("_ratio") || name.ends_with("_share") ||
                                                 name.ends_with("_drop");
            if (!fits) return std::nullopt;
            text.remove_suffix(unit.called.size());
            factor = unit.factor;
            divisor = unit.divisor;
            break;
        }
    while (text.ends_with(' ')) text.remove_suffix(1);
    const auto number = real_of(text);
    if (!number) return std::nullopt;
    return *number * factor / divisor;
}

}  // namespace servetune
