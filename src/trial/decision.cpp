// SPDX-License-Identifier: Apache-2.0
#include "servetune/decision.hpp"

#include "base/probability.hpp"
#include "servetune/detail/base/option_check.hpp"

namespace servetune {

FigureScale FigureScale::of_differences(double usual, const std::vector<double>& all) {
    std::vector<double> distances;
    for (const double value : all)
        if (value != usual) distances.push_back(std::abs(value - usual));
    FigureScale result{usual, std::abs(usual)};
    if (!distances.empty()) {
        const auto middle = distances.begin() + std::ptrdiff_t(distances.size() / 2);
        std::nth_element(distances.begin(), middle, distances.end());
        result.unit = std::max(result.unit, 10 * *middle);
    }
    if (!(result.unit > 0)) result.unit = 1;
    return result;
}

std::string Decision::why_invalid() const {
    return OptionCheck()
        .within("min_gain", min_gain, 0, 1)
        .within("noise_cv", noise_cv, 0, 1)
        .within("never_worse_than", never_worse_than.value_or(0), 0, 1)
        .text();
}

Gain gain_between(const Goal& goal, const Estimate& candidate, const Estimate& base,
                  std::size_t comparisons) {
    const double value = goal.gain(candidate.judged(), base.judged());
    const double each = std::pow(0.975, 1 / double(std::max<std::size_t>(comparisons, 1)));
    const double spread =
        normal_quantile(each) * std::hypot(candidate.relative_error, base.relative_error);
    return {value,
            (1 + value) * std::exp(-spread) - 1,
            (1 + value) * std::exp(spread) - 1,
            0.95,
            false,
            base.scale};
}

double pooled_noise(double assumed_cv, const std::vector<std::vector<double>>& replicates,
                    const Spread& within) {
    Spread all = within;
    for (const std::vector<double>& values : replicates) all += Spread::of(values);
    const auto [squares, freedom] = all;
    const double assumed = assumed_cv * assumed_cv;
    if (freedom > 0 && assumption_is_contradicted(assumed_cv, std::sqrt(squares / freedom)))
        return std::sqrt(squares / freedom);
    return std::sqrt((squares + double(assumed_freedom) * assumed) /
                     (freedom + double(assumed_freedom)));
}

double probability_best(const Goal& goal, const std::vector<Estimate>& all, std::size_t which) {
    const double sign = goal.direction == Direction::maximize ? 1 : -1;
    const auto center = [&](const Estimate& estimate) {
        return sign * std::log(estimate.judged());
    };
    const Estimate& mine = all[which];
    if (mine.relative_error <= 0) {
        for (std::size_t i = 0; i < all.size(); ++i)
            if (i != which && center(all[i]) > center(mine)) return 0;
        return 1;
    }
    constexpr int intervals = 400;
    constexpr double reach = 8;
    constexpr double step = 2 * reach / intervals;
    double sum = 0;
    for (int k = 0; k <= intervals; ++k) {
        const double z = -reach + step * k;
        const double x = center(mine) + z * mine.relative_error;
        double density = normal_density(z);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i == which) continue;
            const double distance = x - center(all[i]);
            density *= all[i].relative_error > 0 ? normal_cdf(distance / all[i].relative_error)
                                                 : (distance > 0 ? 1.0 : 0.0);
        }
        sum += density * (k == 0 || k == intervals ? 1 : k % 2 == 1 ? 4 : 2);
    }
    return sum * step / 3;
}

}  // namespace servetune
