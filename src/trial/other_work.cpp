// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/trial/other_work.hpp"

#include "servetune/detail/trial/metric_key.hpp"

namespace servetune {

void WorkLengths::add(std::map<std::string, WorkLengths>& lengths, const Metrics& metrics) {
    const auto answers = figures_of(metrics, "output_tokens");
    const bool several = std::any_of(answers.begin(), answers.end(),
                                     [](const auto& one) { return !one.first.empty(); });
    for (const auto& [workload, output] : answers) {
        if (several == workload.empty()) continue;
        const auto successes = metrics.find(MetricKey{"successful_requests", workload}.text());
        if (successes == metrics.end() || !(successes->second.value > 0) || !(output->value > 0))
            continue;
        WorkLengths& mine = lengths[std::string(workload)];
        mine.output.add(*output, successes->second.value);
        const auto input = metrics.find(MetricKey{"input_tokens", workload}.text());
        if (input != metrics.end() && input->second.value > 0)
            mine.input.add(input->second, successes->second.value);
    }
}

std::optional<double> share_of_equal_work(std::string_view metric, const WorkLengths& mine,
                                          const WorkLengths& usual) {
    const std::string_view name = MetricKey::of(metric).name;
    const auto ratio = [](const RequestLength& a, const RequestLength& b) {
        return a.tokens > 0 && b.tokens > 0 ? a.mean() / b.mean() : 1.0;
    };
    const double input = ratio(mine.input, usual.input);
    const double output = ratio(mine.output, usual.output);
    const double least = std::min({1.0, input, output});
    const bool both = mine.input.tokens > 0 && usual.input.tokens > 0;
    if (name == "requests_per_second" || name == "latency_mean_seconds" ||
        name == "duration_seconds")
        return least;
    if (name.starts_with("output_tokens_per_second") && !name.ends_with("_per_user"))
        return least / output;
    if (name.starts_with("input_tokens_per_second")) return least / input;
    if (name.starts_with("total_tokens_per_second") && both)
        return least * (usual.input.mean() + usual.output.mean()) /
               (mine.input.mean() + mine.output.mean());
    const bool of_load = name.find("tokens_per_second") != std::string_view::npos ||
                         name.ends_with("requests_per_second") || name.starts_with("sustained_") ||
                         name.starts_with("latency_") || name.starts_with("time_to_first_token") ||
                         name.starts_with("time_per_output_token") ||
                         name.starts_with("inter_token_latency") ||
                         name.starts_with("joules_per_") || name.starts_with("usd_per_");
    return of_load ? std::nullopt : std::optional(1.0);
}

}  // namespace servetune
