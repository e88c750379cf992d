// SPDX-License-Identifier: Apache-2.0
#include "audit_parts.hpp"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace servetune {

Validity audit_order(const BenchmarkResult& result) {
    using namespace audit_tolerances;
    Validity validity;
    const auto find = [&](Verdict verdict, std::string left, std::string right, std::string cause) {
        add_finding(validity, verdict, "order", std::move(left), std::move(right),
                    std::move(cause));
    };
    const auto& first = result.time_to_first_token.mean;
    const auto& per_token = result.time_per_output_token.mean;
    const auto& latency = result.latency.mean;
    const auto ordered = [&](const char* what, const TimeSummary& times) {
        const std::array<std::pair<const char*, std::optional<double>>, 4> ranks{
            {{"median", times.p50}, {"p90", times.p90}, {"p95", times.p95}, {"p99", times.p99}}};
        std::pair<const char*, double> last{"", -std::numeric_limits<double>::infinity()};
        for (const auto& [name, value] : ranks) {
            if (!value) continue;
            if (*value < last.second * (1 - 1e-9))
                find(Verdict::suspect,
                     std::string(what) + " " + last.first + " = " + milliseconds_shown(last.second),
                     std::string(name) + " = " + milliseconds_shown(*value),
                     "percentiles fall: figures are swapped or from other runs");
            last = {name, *value};
        }
    };
    ordered("TTFT", result.time_to_first_token);
    ordered("TPOT", result.time_per_output_token);
    ordered("ITL", result.inter_token_latency);
    ordered("latency", result.latency);
    const auto backwards = [&](const char* what, const TimeSummary& times) {
        for (const auto& time :
             {times.mean, times.p50, times.p90, times.p95, times.p99, times.standard_deviation}) {
            if (!time || *time >= 0) continue;
            find(Verdict::unsound, std::string(what) + " = " + milliseconds_shown(*time),
                 "no time is negative",
                 "impossible: an answer before its request; the client's time stamps are wrong, "
                 "and with them all its times");
            return;
        }
    };
    backwards("TTFT", result.time_to_first_token);
    backwards("TPOT", result.time_per_output_token);
    backwards("ITL", result.inter_token_latency);
    backwards("latency", result.latency);
    const std::array<std::pair<const char*, const std::optional<double>&>, 13> amounts{
        {{"successful requests", result.successful_requests},
         {"failed requests", result.failed_requests},
         {"duration", result.duration_seconds},
         {"peak concurrency", result.peak_concurrent_requests},
         {"mean concurrency", result.mean_concurrency},
         {"input tokens", result.input_tokens},
         {"output tokens", result.output_tokens},
         {"requests/s", result.requests_per_second},
         {"goodput", result.goodput_requests_per_second},
         {"input tokens/s", result.input_tokens_per_second},
         {"output tokens/s", result.output_tokens_per_second},
         {"peak output tokens/s", result.peak_output_tokens_per_second},
         {"total tokens/s", result.total_tokens_per_second}}};
    for (const auto& [what, amount] : amounts)
        if (amount && *amount < 0)
            find(Verdict::unsound, std::string(what) + " = " + figure_shown(*amount),
                 "no count, rate or duration is negative",
                 "impossible: the tool counted wrong, or the figure was changed");
    if (result.duration_seconds == 0 && result.successful_requests > 0)
        find(Verdict::unsound, "duration = 0 s",
             figure_shown(*result.successful_requests) + " requests succeeded",
             "impossible: no request takes no time, so no rate can be held against it");
    if (first && latency && *first > *latency * (1 + rounding(*latency)))
        find(Verdict::suspect, "mean TTFT = " + milliseconds_shown(*first),
             "mean latency = " + milliseconds_shown(*latency),
             "the first token comes after the last: two clocks, or two sets of requests");
    const auto never_seen = [&](const char* what, const TimeSummary& times) {
        if (times.p50 != 0 || !times.mean || *times.mean <= hardly_zero_seconds) return;
        find(Verdict::unsound, std::string("median ") + what + " = 0",
             std::string("mean ") + what + " = " + milliseconds_shown(*times.mean),
             "no request takes no time: most were not observed, or failed and are counted");
    };
    never_seen("TTFT", result.time_to_first_token);
    never_seen("latency", result.latency);
    const auto& median_gap = result.inter_token_latency.p50;
    if (median_gap && *median_gap == 0 && per_token && *per_token > hardly_zero_seconds)
        find(Verdict::suspect, "median ITL = 0", "mean TPOT = " + milliseconds_shown(*per_token),
             "most tokens came at no distance from each other: not observed one by one, or read in "
             "one piece by a busy client");
    return validity;
}

}  // namespace servetune
