// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What makes layouts of different size comparable: rates per device, such as
/// `output_tokens_per_second_per_gpu`, and, where a device's price is known,
/// `usd_per_million_output_tokens`, `..._input_tokens` and `..._tokens` (of both together), of a
/// server that is always as busy. Of each workload too, where the figures have them. `devices`:
/// that the configuration takes, at least 1.
void add_per_device(Metrics& metrics, std::int64_t devices,
                    std::optional<double> usd_per_device_hour);

/// The names of what it can add; with a price also those in dollars.
[[nodiscard]] std::vector<std::string> per_device_metrics(bool priced);

/// The same metric for one device: `requests_per_second_per_gpu`, of a workload where it is of one.
[[nodiscard]] std::string per_device(std::string_view metric);
/// Whether more devices alone raise it: a rate of the whole server.
[[nodiscard]] bool grows_with_devices(std::string_view metric);

}  // namespace servetune
