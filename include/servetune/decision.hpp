// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/objective.hpp"

#include <limits>

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

/// When one configuration counts as better than another.
struct Decision {
    enum class Rule {
        significant,  ///< the gain reaches min_gain and its interval (`Gain`) lies above zero
        published,    ///< the larger number wins if it gains min_gain, as published studies do
    };
    Rule rule = Rule::significant;
    /// A flag that gains less is not worth having: 1 % is what a dedicated GPU's noise hides. Where
    /// figures are compared by differences, a share of `FigureScale::unit`; `noise_cv` likewise.
    double min_gain = 0.01;
    /// standard deviation / mean of repeated measurements, assumed until replicates have measured
    /// it
    double noise_cv = 0.01;
    bool enforce_audit = true;  ///< unsound measurements neither win nor teach
    /// of the machine, as the default shows it that is measured again and again (`Drift`)
    bool correct_drift = true;

    /// Of several workloads: what none of them may lose against the default in any goal, by the
    /// means, a share.
    std::optional<double> never_worse_than{};

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;

    [[nodiscard]] bool believes(const Measurement& measurement) const {
        return !enforce_audit || measurement.validity.verdict != Verdict::unsound;
    }
};

/// What is known of one configuration's objective: the mean of its measurements and how far the
/// truth may be from it.
struct Estimate {
    double mean = 0;
    double relative_error = 0;   ///< standard error / mean, of what is judged
    std::size_t replicates = 0;  ///< measurements in the mean, runs behind one figure included
    FigureScale scale{};         ///< by which the goal's figures are judged

    /// The positive number that is judged; the mean itself where figures are compared by ratios.
    [[nodiscard]] double judged() const { return scale.judged(mean); }
    /// Where the truth lies with 95 %, its logarithm taken as normal; 1.96 is the normal's 97.5 %
    /// point.
    [[nodiscard]] double low() const {
        return scale.figure(judged() * std::exp(-1.959964 * relative_error));
    }
    [[nodiscard]] double high() const {
        return scale.figure(judged() * std::exp(1.959964 * relative_error));
    }
};

/// A relative gain with its interval, the one by which it is decided and which all outputs state;
/// or the one of several that hold together.
struct Gain {
    double value = 0;
    double low = 0;
    double high = 0;
    double level = 0.95;   ///< with which chance the interval holds the truth
    bool assumed = false;  ///< nothing was repeated: it decides by the assumed noise, unstated
    FigureScale
        scale{};  ///< by which it was judged; `stated` by differences is what people are told

    /// Without an interval: nothing is measured of how the figures spread.
    static Gain unknown(double value, const FigureScale& scale = {}) {
        constexpr double infinite = std::numeric_limits<double>::infinity();
        return {value, -infinite, infinite, 0.95, false, scale};
    }
    /// Whether there is an interval to state.
    [[nodiscard]] bool has_interval() const {
        return !assumed && std::isfinite(low) && std::isfinite(high);
    }
    [[nodiscard]] bool significant() const { return low > 0; }
};

/// The gain of `candidate` over `base`. Its logarithm is taken as normal with the errors of both
/// added in squares. Where the candidate is the best-looking of several, `comparisons` says of how
/// many: the interval is widened until all of theirs hold together with 95 % (Sidak, JASA 62, 1967;
/// for what one base has in common with all it is a little too wide).
Gain gain_between(const Goal& goal, const Estimate& candidate, const Estimate& base,
                  std::size_t comparisons = 1);

/// Whether `gain` is enough to change a configuration for it.
inline bool meets_min_gain(const Decision& decision, const Gain& gain) {
    return gain.value >= decision.min_gain &&
           (decision.rule == Decision::Rule::published || gain.significant());
}

/// How the runs behind figures spread around these: relative squares, and the degrees of freedom
/// that they have.
struct Spread {
    double squares = 0;
    double freedom = 0;

    /// Of one figure; nothing where it is not known to be the mean of several runs.
    static Spread of(const Metric& metric, const FigureScale& scale = {}) {
        if (metric.replicates < 2 || !metric.standard_error ||
            (scale.ratios() && !(metric.value > 0)))
            return {};
        const auto runs = double(metric.replicates);
        const double error = scale.relative_error(metric.value, *metric.standard_error);
        return {runs * (runs - 1) * error * error, runs - 1};
    }
    /// Of the measurements of one configuration.
    static Spread of(const std::vector<double>& values) {
        if (values.size() < 2) return {};
        double mean = 0;
        for (const double value : values) mean += value / double(values.size());
        double squares = 0;
        for (const double value : values) squares += (value / mean - 1) * (value / mean - 1);
        return {squares, double(values.size() - 1)};
    }
    Spread& operator+=(const Spread& other) {
        squares += other.squares;
        freedom += other.freedom;
        return *this;
    }
};

/// Whether measured noise says that the assumed one is wrong: its variance is more than six times
/// as large (F with 4 and 5 degrees of freedom exceeds 5.2 with 5 %).
inline bool assumption_is_contradicted(double assumed_cv, double measured_cv) {
    return measured_cv * measured_cv > 6 * assumed_cv * assumed_cv;
}

inline constexpr std::size_t assumed_freedom =
    5;  ///< degrees of freedom that an assumed noise weighs

/// The relative noise of one measurement: the assumed one pooled with what replicates show (each
/// inner vector: the measurements of one configuration; `within`: runs behind single figures). The
/// assumption weighs 5 degrees of freedom: it is then off by less than a factor of 2.5 with 95 %
/// (chi-square_5 / 5 lies in [0.17, 2.57]), and ten replicates already outweigh it. One that they
/// contradict weighs nothing (`assumption_is_contradicted`).
double pooled_noise(double assumed_cv, const std::vector<std::vector<double>>& replicates,
                    const Spread& within = {});

/// The probability that estimate `which` has the best true value of all, each true log value being
/// normal around its mean: the integral of its density times the others' distribution functions
/// (Simpson's rule over +-8 deviations).
double probability_best(const Goal& goal, const std::vector<Estimate>& all, std::size_t which);

}  // namespace servetune
