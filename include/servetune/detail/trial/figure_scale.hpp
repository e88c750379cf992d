// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace servetune {

/// How the figures of one goal are compared: by ratios where all of them are above 0, else by
/// differences.
///
/// All that judges figures judges ratios: errors are shares and models learn logarithms. Where a
/// figure is 0 or below, exp((figure - centre) / unit) is judged in the place of each figure. A
/// difference of one unit is then a factor of e, and an error of 1 % one of unit / 100. Beyond
/// `knee` units the scale is logarithmic: order is kept, and nothing overflows.
struct FigureScale {
    double centre = 0;  ///< the figure that is judged as 1
    double unit = 0;    ///< in the metric's own unit; 0: ratios

    friend bool operator==(const FigureScale&, const FigureScale&) = default;

    /// For figures that may be 0 or below. The unit is the size of the default's figure, or ten
    /// times the median distance of the others from it where that is larger: a gain of 1 % means 1
    /// % of that. Figures then differ by some ten per cent, as rates do, and exp is nearly straight
    /// over them.
    static FigureScale of_differences(double usual, const std::vector<double>& all);

    [[nodiscard]] bool ratios() const { return unit == 0; }
    /// A positive number, more for more.
    [[nodiscard]] double judged(double figure) const {
        return ratios() ? figure : std::exp(squeezed((figure - centre) / unit));
    }
    /// The figure that is judged so.
    [[nodiscard]] double figure(double judged) const {
        return ratios() ? judged : centre + unit * stretched(std::log(judged));
    }
    /// The error of a figure as a share of what is judged.
    [[nodiscard]] double relative_error(double figure, double error) const {
        return error / (ratios() ? figure : unit);
    }
    /// A gain as it is stated: a share, or a difference in the metric's unit.
    [[nodiscard]] double stated(double gain) const {
        return ratios() ? gain : unit * stretched(std::log1p(gain));
    }

private:
    static constexpr double knee = 50;
    static double squeezed(double z) {
        return std::abs(z) <= knee ? z : std::copysign(knee + std::log1p(std::abs(z) - knee), z);
    }
    static double stretched(double z) {
        return std::abs(z) <= knee ? z : std::copysign(knee + std::expm1(std::abs(z) - knee), z);
    }
};

}  // namespace servetune
