// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/student.hpp"
#include "servetune/detail/trial/decision.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace servetune {

/// One measurement of the configuration that is measured again and again.
struct DriftCheck {
    double at = 0;         ///< its place among the trials
    double log_value = 0;  ///< ln of what was measured
};

/// How the machine's speed changed during a study, by what one configuration gave at several places
/// of it.
///
/// A straight trend and one step are tested against no change (F tests with one degree of freedom;
/// Bonferroni over both shapes and the step's places) by the noise that repeats show: how the
/// checks spread around the shape, and other configurations around theirs without its change. The
/// assumed noise proves no drift: checks are so few that they seldom contradict a wrong one. Where
/// one of the shapes is likely, be it with the assumed noise as it weighs in `pooled_noise`, the
/// level between the checks is that of a random walk with noise, whose variance is found by
/// restricted likelihood, and what is known of it at any place comes by ordinary kriging (Cressie,
/// Statistics for Spatial Data, 1993, sections 2.6 and 3.2): a step is known to lie between two
/// checks, not where.
class Drift {
public:
    static constexpr double false_alarms = 0.05;
    static constexpr std::size_t least_checks = 3;

    Drift() = default;
    /// `checks`: in any order. `noise_cv`: assumed of one measurement. `others`: what each other
    /// configuration gave.
    Drift(std::vector<DriftCheck> checks, double noise_cv,
          const std::vector<std::vector<DriftCheck>>& others = {})
        : checks_(std::move(checks)) {
        std::sort(checks_.begin(), checks_.end(),
                  [](const DriftCheck& a, const DriftCheck& b) { return a.at < b.at; });
        if (checks_.size() < least_checks || !(noise_cv > 0)) return;
        test(noise_cv, others);
        if (taken_off()) find_walk();
    }

    [[nodiscard]] bool real() const { return chance_ < false_alarms; }
    /// Whether it is taken off: long before a drift is proven it may make a gain that is none.
    [[nodiscard]] bool taken_off() const { return std::min(chance_, chance_as_assumed_) < 0.5; }
    /// Of as much change where there is none, by measured noise; 1 of fewer than three checks.
    [[nodiscard]] double chance() const { return chance_; }
    [[nodiscard]] std::size_t checks() const { return checks_.size(); }
    /// From the highest level at a check to the lowest, as a share of the highest; 0 where it is
    /// not real.
    [[nodiscard]] double change() const {
        if (!real()) return 0;
        std::vector<double> levels;
        for (const DriftCheck& check : checks_) levels.push_back(offset(check.at));
        const auto [low, high] = std::minmax_element(levels.begin(), levels.end());
        return -std::expm1(*low - *high);
    }

    /// How the checks spread around the better of both shapes: the noise, without the change.
    [[nodiscard]] Spread spread() const { return spread_; }

    /// ln of the speed at a place over the mean of the checks; 0 where no drift is taken off.
    [[nodiscard]] double offset(double at) const {
        if (!taken_off()) return 0;
        const std::vector<double> weights = kriging({at}).first;
        double level = 0;
        for (std::size_t i = 0; i < checks_.size(); ++i)
            level += weights[i] * (checks_[i].log_value - mean_);
        return level;
    }
    /// Of the mean level at some places: the variance that is not known from the checks. Between
    /// two checks that is at least what it would be of one step there, of which nobody knows where:
    /// u (1 - u) d^2 a share u of the way.
    [[nodiscard]] double variance(const std::vector<double>& places) const {
        if (!taken_off() || places.empty()) return 0;
        double step = 0;
        for (const double place : places)
            step += step_deviation(place) / static_cast<double>(places.size());
        return std::max({0.0, kriging(places).second, step * step});
    }

private:
    [[nodiscard]] double step_deviation(double place) const;
    /// How figures spread around their mean and `times` a shape.
    template <class Shape>
    static Spread around(const std::vector<DriftCheck>& figures, const Shape& shape, double times) {
        if (figures.size() < 2) return {};
        double mean = 0;
        for (const DriftCheck& one : figures)
            mean += (one.log_value - times * shape(one.at)) / static_cast<double>(figures.size());
        double squares = 0;
        for (const DriftCheck& one : figures)
            squares += std::pow(one.log_value - times * shape(one.at) - mean, 2);
        return {squares, static_cast<double>(figures.size() - 1)};
    }
    /// `shape`: place -> height; `places`: how many such shapes are tried.
    template <class Shape>
    void look(const Shape& shape, double places, double noise_cv,
              const std::vector<std::vector<DriftCheck>>& others) {
        double height = 0;
        for (const DriftCheck& check : checks_)
            height += shape(check.at) / static_cast<double>(checks_.size());
        double along = 0;
        double heights = 0;
        for (const DriftCheck& check : checks_) {
            along += (shape(check.at) - height) * check.log_value;
            heights += (shape(check.at) - height) * (shape(check.at) - height);
        }
        if (!(heights > 0)) return;
        Spread rest = around(checks_, shape, along / heights);
        rest.freedom -= 1;  // the height was fitted
        Spread noise = rest;
        for (const std::vector<DriftCheck>& figures : others)
            noise += around(figures, shape, along / heights);
        const double explained = std::abs(along) / std::sqrt(heights);
        const auto chance = [&](double deviation, double freedom) {
            return 2 * places *
                   student_tails(explained / std::max(deviation, 1e-12),
                                 static_cast<std::size_t>(freedom));
        };
        const double measured = std::sqrt(noise.squares / noise.freedom);
        chance_ = std::min(chance_, chance(measured, noise.freedom));
        const double weight = assumption_is_contradicted(noise_cv, measured)
                                  ? 0
                                  : static_cast<double>(assumed_freedom);
        chance_as_assumed_ = std::min(
            chance_as_assumed_, chance(pooled_noise(noise_cv, {}, noise), noise.freedom + weight));
        if (spread_.freedom > 0 && rest.squares >= spread_.squares) return;
        spread_ = rest;
        noise_variance_ = std::pow(pooled_noise(noise_cv, {}, noise), 2);
    }
    void test(double noise_cv, const std::vector<std::vector<DriftCheck>>& others);

    /// Of the differences to the first check, whose covariances hold no unknown level.
    [[nodiscard]] double log_likelihood(double walk) const;

    /// The variance that the walk gains from trial to trial.
    void find_walk();

    /// Weights of the checks for the mean level at some places, and its variance: with g_ij = q
    /// |t_i - t_j| / 2 and the noise s^2, (s^2 I - G) w + m 1 = -g and sum w = 1.
    [[nodiscard]] std::pair<std::vector<double>, double> kriging(
        const std::vector<double>& places) const;

    std::vector<DriftCheck> checks_{};
    double mean_ = 0;
    double chance_ = 1;
    double chance_as_assumed_ = 1;  ///< the same, the assumed noise believed
    Spread spread_{};
    double noise_variance_ = 0;
    double walk_ = 0;  ///< variance of the level's change from one trial to the next
};

}  // namespace servetune
