// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/normal.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/detail/trial/standing.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

namespace comparable_figures_detail {

/// The default where it was measured, else the first configuration that was; null: none.
inline const Standing* yardstick(const std::vector<Standing>& standings,
                                 std::optional<std::size_t> usual) {
    if (usual && standings[*usual].measured() > 0) return &standings[*usual];
    const auto first = std::find_if(standings.begin(), standings.end(),
                                    [](const Standing& one) { return one.measured() > 0; });
    return first == standings.end() ? nullptr : &*first;
}

/// The measurements that a standing's figures come from.
inline std::vector<const Measurement*> counted(const Standing& standing) {
    std::vector<const Measurement*> result;
    const std::vector<double>& places = standing.leading().places;
    for (const Trial* trial : standing.trials)
        if (std::find(places.begin(), places.end(), static_cast<double>(trial->id)) != places.end())
            result.push_back(trial->measurement());
    return result;
}

inline std::map<std::string, WorkLengths> lengths_of(const Standing& standing) {
    std::map<std::string, WorkLengths> result;
    for (const Measurement* measurement : counted(standing))
        WorkLengths::add(result, measurement->metrics);
    return result;
}

}  // namespace comparable_figures_detail

/// How goal k is compared. Where all its figures are above 0, by ratios; else by differences, and
/// then the figures become what is judged.
FigureScale take_scale(std::vector<Standing>& standings, const Goal& goal, std::size_t k,
                       std::optional<std::size_t> usual);

/// Where the requests of a configuration had other lengths than the default's, beyond the noise of
/// these lengths, a rate per request or a latency does not say which of both is faster. What equal
/// work leaves of a figure is taken (`share_of_equal_work`); a configuration with a goal or a
/// latency limit of which that is not known cannot win.
///
/// A difference counts beyond 1.96 deviations; to refuse a configuration for it, so many that all
/// configurations together are refused wrongly in one study of twenty (Sidak, as `gain_between`).
void compare_work(std::vector<Standing>& standings, const Objective& objective,
                  std::optional<std::size_t> usual);

}  // namespace servetune
