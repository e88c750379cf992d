// SPDX-License-Identifier: Apache-2.0
// What AIPerf writes over several runs: a sweep's combinations (profile_export_aiperf_sweep.json)
// and the mean of runs of one (profile_export_aiperf_aggregate.json). Each statistic of each metric
// has its mean over the runs (`time_to_first_token_p99`); some sweeps of single runs have the
// metrics alone, with their averages.
#include "aiperf_metrics.hpp"
#include "result_formats.hpp"

#include <array>

namespace servetune {
namespace {

using Json = nlohmann::json;

bool is_aiperf_runs(const Json& value) {
    return text_at(value, {"metadata", "aggregation_type"}) == "confidence" &&
           node_at(value, {"metrics"}) != nullptr;
}

bool is_aiperf_sweep(const Json& value) {
    const Json* combinations = node_at(value, {"per_combination_metrics"});
    return combinations != nullptr && combinations->is_array() &&
           text_at(value, {"aggregation_type"}) == "sweep";
}

/// `{"time_to_first_token_p99": {"mean": 12, "unit": "ms"}}` as the export of one run has it.
Json as_one_run(const Json& metrics) {
    Json run = Json::object();
    if (!metrics.is_object()) return run;
    for (const auto& [name, metric] : metrics.items()) {
        const auto mean = figure_at(metric, {"mean"});
        const std::string unit = text_at(metric, {"unit"});
        if (!mean || unit.empty()) continue;
        std::string tag = name, statistic = "avg";
        constexpr std::array<std::string_view, 8> statistics{"_avg", "_p50", "_p90", "_p95",
                                                             "_p99", "_std", "_min", "_max"};
        for (const std::string_view ending : statistics)
            if (name.ends_with(ending)) {
                tag = name.substr(0, name.size() - ending.size());
                statistic = ending.substr(1);
            }
        run[tag]["unit"] = unit;
        run[tag][statistic] = *mean;
    }
    return run;
}

PublishedResult read_means(const Json& metrics) {
    PublishedResult result = read_aiperf_metrics(as_one_run(metrics));
    result.unread["figures"] = "means over runs";
    return result;
}

std::vector<PublishedResult> read_aiperf_runs(const Json& value) {
    PublishedResult result = read_means(*node_at(value, {"metrics"}));
    result.tool_version = text_at(value, {"aiperf_version"});
    for (const std::string_view count : {"num_profile_runs", "num_successful_runs"})
        if (const Json* node = node_at(value, {"metadata", count}))
            if (const auto text = scalar_text(*node)) result.unread[std::string(count)] = *text;
    return {result};
}

std::vector<PublishedResult> read_aiperf_sweep(const Json& value) {
    std::vector<PublishedResult> results;
    for (const Json& combination : *node_at(value, {"per_combination_metrics"})) {
        static const Json nothing = Json::object();
        const Json* metrics = node_at(combination, {"metrics"});
        PublishedResult result = read_means(metrics == nullptr ? nothing : *metrics);
        std::string label;
        if (const Json* parameters = node_at(combination, {"parameters"});
            parameters != nullptr && parameters->is_object())
            for (const auto& [path, parameter] : parameters->items()) {
                // `concurrency`, or its path in the configuration.
                const std::string leaf = path.substr(path.rfind('.') + 1);
                const auto number = figure_at(parameter, {});
                if (leaf == "concurrency" && number) result.result.maximum_concurrency = number;
                if ((leaf == "request_rate" || leaf == "rate") && number)
                    result.result.requested_rate_per_second = number;
                if (const auto text = scalar_text(parameter)) {
                    result.unread[one_line(path)] = *text;
                    label.append(label.empty() ? "" : ", ").append(leaf).append("=").append(*text);
                }
            }
        if (!label.empty()) result.labels.push_back(one_line(label));
        results.push_back(std::move(result));
    }
    return results;
}

}  // namespace

const ResultFormat aiperf_runs_format{"aiperf", "metadata.aggregation_type confidence, and metrics",
                                      is_aiperf_runs, read_aiperf_runs};
const ResultFormat aiperf_sweep_format{"aiperf",
                                       "aggregation_type sweep, and per_combination_metrics",
                                       is_aiperf_sweep, read_aiperf_sweep};

}  // namespace servetune
