// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/trial/figure_scale.hpp"

namespace servetune {

FigureScale FigureScale::of_differences(double usual, const std::vector<double>& all) {
    std::vector<double> distances;
    for (const double value : all)
        if (value != usual) distances.push_back(std::abs(value - usual));
    FigureScale result{usual, std::abs(usual)};
    if (!distances.empty()) {
        const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
        std::nth_element(distances.begin(), middle, distances.end());
        result.unit = std::max(result.unit, 10 * *middle);
    }
    if (!(result.unit > 0)) result.unit = 1;
    return result;
}

}  // namespace servetune
