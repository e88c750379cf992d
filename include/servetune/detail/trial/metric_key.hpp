// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// The key of a figure in `Metrics`: `total_tokens_per_second`, or `total_tokens_per_second@chat`
/// for one workload of several. No other place knows the sign between them.
struct MetricKey {
    std::string_view name;
    std::string_view workload{};  ///< empty: the figure is of the whole measurement

    /// Views into `key`, which must outlive them.
    static constexpr MetricKey of(std::string_view key) {
        const std::size_t at = key.find(sign);
        return at == std::string_view::npos ? MetricKey{key}
                                            : MetricKey{key.substr(0, at), key.substr(at + 1)};
    }
    [[nodiscard]] std::string text() const {
        return workload.empty() ? std::string(name)
                                : std::string(name) + sign + std::string(workload);
    }

private:
    static constexpr char sign = '@';
};

/// The figures that a measurement has of one metric, as workload -> figure. An empty workload is
/// the whole measurement. Views into `metrics`.
inline std::vector<std::pair<std::string_view, const Metric*>> figures_of(const Metrics& metrics,
                                                                          std::string_view name) {
    std::vector<std::pair<std::string_view, const Metric*>> result;
    for (auto at = metrics.lower_bound(name); at != metrics.end() && at->first.starts_with(name);
         ++at)
        if (const MetricKey key = MetricKey::of(at->first); key.name == name)
            result.emplace_back(key.workload, &at->second);
    return result;
}

}  // namespace servetune
