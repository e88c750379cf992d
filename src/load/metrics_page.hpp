// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace servetune {

// Figures of a page in Prometheus' text format (version 0.0.4), which any server may have written:
// a line that is no sample is passed over, and a metric of which one sample is no finite number
// from 0 on is absent. No line is read twice as deep as it is long, and nothing recurses.

/// The sum of a metric's samples over all of its labels (models, engines, ranks). Nothing when the
/// page does not have it, or has a number that cannot be.
std::optional<double> metric_in(std::string_view page, std::string_view metric);

/// The labels of the metric's first sample that has any, such as vLLM's
/// `vllm:cache_config_info{block_size="16",...}`; escapes stay as they are.
std::map<std::string, std::string> labels_in(std::string_view page, std::string_view metric);

}  // namespace servetune
