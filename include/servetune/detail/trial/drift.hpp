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
    [[nodiscard]] double step_deviation(double place) const {
        const auto after =
            std::upper_bound(checks_.begin(), checks_.end(), place,
                             [](double at, const DriftCheck& check) { return at < check.at; });
        if (after == checks_.begin() || after == checks_.end()) return 0;
        const double before = std::prev(after)->at;
        const double share = (place - before) / (after->at - before);
        return std::sqrt(share * (1 - share)) * std::abs(offset(after->at) - offset(before));
    }
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
    void test(double noise_cv, const std::vector<std::vector<DriftCheck>>& others) {
        for (const DriftCheck& check : checks_)
            mean_ += check.log_value / static_cast<double>(checks_.size());
        look([](double at) { return at; }, 1, noise_cv, others);
        for (std::size_t i = 0; i + 1 < checks_.size(); ++i) {
            const double before = checks_[i].at;
            const double after = checks_[i + 1].at;
            // Nobody knows on which side of the step the figures between both checks are.
            std::vector<std::vector<DriftCheck>> known = others;
            for (std::vector<DriftCheck>& figures : known)
                std::erase_if(figures, [&](const DriftCheck& one) {
                    return one.at > before && one.at < after;
                });
            look([&](double at) { return at > before ? 1.0 : 0.0; },
                 static_cast<double>(checks_.size() - 1), noise_cv, known);
        }
    }

    /// Of the differences to the first check, whose covariances hold no unknown level.
    [[nodiscard]] double log_likelihood(double walk) const {
        const std::size_t n = checks_.size() - 1;
        std::vector<double> factor(n * n);
        std::vector<double> white(n);
        double result = 0;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j <= i; ++j) {
                double sum =
                    walk * (checks_[j + 1].at - checks_[0].at) + noise_variance_ * (i == j ? 2 : 1);
                for (std::size_t k = 0; k < j; ++k) sum -= factor[i * n + k] * factor[j * n + k];
                factor[i * n + j] = i == j ? std::sqrt(sum) : sum / factor[j * n + j];
            }
            double value = checks_[i + 1].log_value - checks_[0].log_value;
            for (std::size_t k = 0; k < i; ++k) value -= factor[i * n + k] * white[k];
            white[i] = value / factor[i * n + i];
            result -= 0.5 * white[i] * white[i] + std::log(factor[i * n + i]);
        }
        return result;
    }

    /// The variance that the walk gains from trial to trial.
    void find_walk() {
        const double length = std::max(1.0, checks_.back().at - checks_.front().at);
        std::optional<double> best;
        for (int step = 0; step <= 60;
             ++step) {  // the whole walk: from a tenth to a hundred deviations of the noise
            const double walk = noise_variance_ * std::pow(10, -2 + step / 10.0) / length;
            const double likelihood = log_likelihood(walk);
            if (best && likelihood <= *best) continue;
            best = likelihood;
            walk_ = walk;
        }
    }

    /// Weights of the checks for the mean level at some places, and its variance: with g_ij = q
    /// |t_i - t_j| / 2 and the noise s^2, (s^2 I - G) w + m 1 = -g and sum w = 1.
    [[nodiscard]] std::pair<std::vector<double>, double> kriging(
        const std::vector<double>& places) const {
        const std::size_t n = checks_.size();
        const auto apart = [&](double a, double b) { return 0.5 * walk_ * std::abs(a - b); };
        const auto count = static_cast<double>(places.size());
        std::vector<std::vector<double>> rows(n + 1, std::vector<double>(n + 2, 1.0));
        std::vector<double> to_places(n, 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j)
                rows[i][j] = (i == j ? noise_variance_ : 0) - apart(checks_[i].at, checks_[j].at);
            for (const double place : places) to_places[i] += apart(checks_[i].at, place) / count;
            rows[i][n + 1] = -to_places[i];
        }
        rows[n][n] = 0;
        for (std::size_t k = 0; k <= n; ++k) {  // Gauss, with the largest pivot
            const auto pivot = std::max_element(
                rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
                [&](const auto& a, const auto& b) { return std::abs(a[k]) < std::abs(b[k]); });
            std::swap(rows[k], *pivot);
            for (std::size_t i = k + 1; i <= n; ++i) {
                const double times = rows[i][k] / rows[k][k];
                for (std::size_t j = k; j <= n + 1; ++j) rows[i][j] -= times * rows[k][j];
            }
        }
        std::vector<double> solution(n + 1);
        for (std::size_t k = n + 1; k-- > 0;) {
            solution[k] = rows[k][n + 1];
            for (std::size_t j = k + 1; j <= n; ++j) solution[k] -= rows[k][j] * solution[j];
            solution[k] /= rows[k][k];
        }
        double variance = 0;
        for (const double a : places)
            for (const double b : places) variance -= apart(a, b) / count / count;
        for (std::size_t i = 0; i < n; ++i) {
            variance += solution[i] * (2 * to_places[i] + noise_variance_ * solution[i]);
            for (std::size_t j = 0; j < n; ++j)
                variance -= solution[i] * solution[j] * apart(checks_[i].at, checks_[j].at);
        }
        solution.pop_back();
        return {std::move(solution), variance};
    }

    std::vector<DriftCheck> checks_{};
    double mean_ = 0;
    double chance_ = 1;
    double chance_as_assumed_ = 1;  ///< the same, the assumed noise believed
    Spread spread_{};
    double noise_variance_ = 0;
    double walk_ = 0;  ///< variance of the level's change from one trial to the next
};

}  // namespace servetune
