// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace servetune {

/// Whether `value` has a metric as GenAI-Perf and AIPerf write it: an object with its unit and its
/// average.
bool is_metric(const nlohmann::json& value, std::string_view name);

/// The figures of an export of AIPerf: one object a metric.
PublishedResult read_aiperf_metrics(const nlohmann::json& value);

/// Those of an export of GenAI-Perf.
PublishedResult read_genai_perf_metrics(const nlohmann::json& value);

}  // namespace servetune
