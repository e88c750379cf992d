// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/ranges.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace servetune {

inline double median_of(std::vector<double> values) {
    if (values.empty()) return 0;
    sort(values);
    return values.size() % 2 == 1
               ? values[values.size() / 2]
               : 0.5 * (values[values.size() / 2 - 1] + values[values.size() / 2]);
}

/// From an objective's numbers to what a Gaussian process is fitted to, and back: z = (ln y -
/// centre) / spread, the sign turned where less is better, so that more is better always.
/// Logarithms, because effects of flags multiply. Below -2 the scale is compressed, z <- -2 - ln(1
/// + (-2 - z)): how much worse a hopeless configuration is must not bend the model where it
/// matters. Order is kept, and everything can be undone.
///
/// `Tail::straight` compresses nothing, and takes its spread from all values: for effects, which
/// are differences of logarithms. A difference of compressed values cannot be undone.
class OutputScale {
public:
    enum class Tail { compressed, straight };

    /// A study that has seen next to nothing: flags change a rate by some ten per cent (the
    /// published studies: 1.5 to 30 %).
    static constexpr double usual_spread = 0.1;

    /// `values`: positive, measured so far; may be empty. `least_spread`: of the logarithm, what
    /// noise alone would give.
    OutputScale(bool more_is_better, const std::vector<double>& values, double least_spread,
                Tail tail = Tail::compressed)
        : sign_(more_is_better ? 1 : -1),
          knee_(tail == Tail::compressed ? -2 : -std::numeric_limits<double>::infinity()) {
        std::vector<double> logs;
        for (const double value : values) logs.push_back(sign_ * std::log(value));
        if (logs.empty()) return;
        centre_ = median_of(logs);
        std::vector<double> better;  // the half that matters: outliers of the worse one have no say
        for (const double value : logs)
            if (value >= centre_) better.push_back(value - centre_);
        // 1.4826: from the median of absolute deviations to a standard deviation of a normal. The
        // usual spread counts as two observations.
        const double seen = 1.4826 * median_of(better);
        const auto count = double(better.size());
        constexpr double prior_count = 2;
        spread_ =
            std::max(std::sqrt((count * seen * seen + prior_count * usual_spread * usual_spread) /
                               (count + prior_count)),
                     least_spread);
        if (tail == Tail::compressed) return;
        double squares = 0;
        for (const double value : logs) squares += (value - centre_) * (value - centre_);
        spread_ = std::max(spread_, std::sqrt(squares / double(logs.size())));
    }

    [[nodiscard]] double scaled(double value) const {
        return clipped((sign_ * std::log(value) - centre_) / spread_);
    }
    [[nodiscard]] double value(double scaled) const {
        return std::exp(sign_ * (centre_ + spread_ * unclipped(scaled)));
    }
    /// Of a logarithm of the objective: more is better.
    [[nodiscard]] double turned(double log_value) const { return sign_ * log_value; }
    /// Of ln y: what one unit is.
    [[nodiscard]] double spread() const { return spread_; }

private:
    [[nodiscard]] double clipped(double z) const {
        return z >= knee_ ? z : knee_ - std::log1p(knee_ - z);
    }
    [[nodiscard]] double unclipped(double z) const {
        return z >= knee_ ? z : knee_ - std::expm1(knee_ - z);
    }
    double sign_;
    double knee_;  ///< below it values are compressed
    double centre_ = 0;
    double spread_ = usual_spread;
};

}  // namespace servetune
