// SPDX-License-Identifier: Apache-2.0
#include "base/probability.hpp"
#include "servetune/standings.hpp"

#include <iterator>

namespace servetune {
namespace {

/// How figures spread around their mean and `times` a shape.
template <class Shape>
Spread around(const std::vector<DriftCheck>& figures, const Shape& shape, double times) {
    if (figures.size() < 2) return {};
    double mean = 0;
    for (const DriftCheck& one : figures)
        mean += (one.log_value - times * shape(one.at)) / double(figures.size());
    double squares = 0;
    for (const DriftCheck& one : figures)
        squares += std::pow(one.log_value - times * shape(one.at) - mean, 2);
    return {squares, double(figures.size() - 1)};
}

}  // namespace

Drift::Drift(std::vector<DriftCheck> checks, double noise_cv,
             const std::vector<std::vector<DriftCheck>>& others)
    : checks_(std::move(checks)) {
    sort(checks_, [](const DriftCheck& a, const DriftCheck& b) { return a.at < b.at; });
    if (checks_.size() < least_checks || !(noise_cv > 0)) return;
    test(noise_cv, others);
    if (taken_off()) find_walk();
}

double Drift::change() const {
    if (!real()) return 0;
    std::vector<double> levels;
    for (const DriftCheck& check : checks_) levels.push_back(offset(check.at));
    const auto [low, high] = std::minmax_element(levels.begin(), levels.end());
    return -std::expm1(*low - *high);
}

double Drift::offset(double at) const {
    if (!taken_off()) return 0;
    const std::vector<double> weights = kriging({at}).first;
    double level = 0;
    for (std::size_t i = 0; i < checks_.size(); ++i)
        level += weights[i] * (checks_[i].log_value - mean_);
    return level;
}

double Drift::variance(const std::vector<double>& places) const {
    if (!taken_off() || places.empty()) return 0;
    double step = 0;
    for (const double place : places) step += step_deviation(place) / double(places.size());
    return std::max({0.0, kriging(places).second, step * step});
}

template <class Shape>
void Drift::look(const Shape& shape, double places, double noise_cv,
                 const std::vector<std::vector<DriftCheck>>& others) {
    double height = 0;
    for (const DriftCheck& check : checks_) height += shape(check.at) / double(checks_.size());
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
               student_tails(explained / std::max(deviation, 1e-12), std::size_t(freedom));
    };
    const double measured = std::sqrt(noise.squares / noise.freedom);
    chance_ = std::min(chance_, chance(measured, noise.freedom));
    const double weight =
        assumption_is_contradicted(noise_cv, measured) ? 0 : double(assumed_freedom);
    chance_as_assumed_ = std::min(
        chance_as_assumed_, chance(pooled_noise(noise_cv, {}, noise), noise.freedom + weight));
    if (spread_.freedom > 0 && rest.squares >= spread_.squares) return;
    spread_ = rest;
    noise_variance_ = std::pow(pooled_noise(noise_cv, {}, noise), 2);
}

double Drift::step_deviation(double place) const {
    const auto after =
        std::upper_bound(checks_.begin(), checks_.end(), place,
                         [](double at, const DriftCheck& check) { return at < check.at; });
    if (after == checks_.begin() || after == checks_.end()) return 0;
    const double before = std::prev(after)->at;
    const double share = (place - before) / (after->at - before);
    return std::sqrt(share * (1 - share)) * std::abs(offset(after->at) - offset(before));
}

void Drift::test(double noise_cv, const std::vector<std::vector<DriftCheck>>& others) {
    for (const DriftCheck& check : checks_) mean_ += check.log_value / double(checks_.size());
    look([](double at) { return at; }, 1, noise_cv, others);
    for (std::size_t i = 0; i + 1 < checks_.size(); ++i) {
        const double before = checks_[i].at;
        const double after = checks_[i + 1].at;
        // Nobody knows on which side of the step the figures between both checks are.
        std::vector<std::vector<DriftCheck>> known = others;
        for (std::vector<DriftCheck>& figures : known)
            std::erase_if(figures,
                          [&](const DriftCheck& one) { return one.at > before && one.at < after; });
        look([&](double at) { return at > before ? 1.0 : 0.0; }, double(checks_.size() - 1),
             noise_cv, known);
    }
}

double Drift::log_likelihood(double walk) const {
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

void Drift::find_walk() {
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

std::pair<std::vector<double>, double> Drift::kriging(const std::vector<double>& places) const {
    const std::size_t n = checks_.size();
    const auto apart = [&](double a, double b) { return 0.5 * walk_ * std::abs(a - b); };
    const auto count = double(places.size());
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
            rows.begin() + std::ptrdiff_t(k), rows.end(),
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

}  // namespace servetune
